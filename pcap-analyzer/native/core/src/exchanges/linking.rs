//! Where publications are linked with their deliveries: at once, or, where several threads place messages of one capture, when all that was sent
//! before is known.

use super::links::{add_parts, Delivery, Key, Links, PublicationId, Publishing};
use super::{Event, ExchangeId, Exchanges, Moment};
use crate::message::{Message, Parts};
use crate::share::Part;
use std::collections::VecDeque;

/// What is to be linked.
#[derive(Debug)]
enum What {
    Publish(Publishing),
    /// Bytes of a publication's leg; publications are numbered by each thread.
    AddToLeg(PublicationId, Parts),
    Refuse(PublicationId),
    Deliver(Delivery),
}

/// What a thread found to be linked, and with which packet, by number among all packets.
#[derive(Debug)]
struct Step {
    order: u64,
    what: What,
}

/// What a thread found to be linked since it was asked last.
#[derive(Debug, Default)]
pub struct Steps {
    steps: Vec<Step>,
    /// Where the publications stand among them.
    publications: Vec<usize>,
    /// Publications before these.
    published: u64,
}

/// How one thread's exchanges are linked.
#[derive(Debug)]
pub(super) enum Linking {
    /// At once.
    Here(Links),
    /// By a [`Linker`].
    Later(Steps),
}

impl Default for Linking {
    fn default() -> Self {
        Self::Here(Links::default())
    }
}

impl Steps {
    fn add(&mut self, order: u64, what: What) {
        self.steps.push(Step { order, what });
    }

    fn publish(&mut self, order: u64, publishing: Publishing) -> PublicationId {
        let id = PublicationId::behind(self.published + self.publications.len() as u64);
        self.publications.push(self.steps.len());
        self.add(order, What::Publish(publishing));
        id
    }

    /// What comes while the publication is still here needs no step of its own: a leg is a sum.
    fn add_to_leg(&mut self, order: u64, publication: PublicationId, parts: Parts) {
        let number = publication.before().checked_sub(self.published).and_then(|number| usize::try_from(number).ok());
        let step = number.and_then(|number| self.steps.get_mut(*self.publications.get(number)?));
        match step.map(|step| &mut step.what) {
            Some(What::Publish(publishing)) => add_parts(&mut publishing.parts, &parts),
            _ => self.add(order, What::AddToLeg(publication, parts)),
        }
    }

    fn hand_over(&mut self) -> impl Iterator<Item = Step> + '_ {
        self.published += self.publications.len() as u64;
        self.publications.clear();
        self.steps.drain(..)
    }
}

impl Exchanges {
    /// A publisher's message reaches the broker in `exchange`: deliveries of it may follow.
    pub fn publish(&mut self, exchange: ExchangeId, message: &Message, at: &Moment) -> PublicationId {
        let publishing = Publishing {
            key: Key::of(message),
            exchange: exchange.number,
            session: at.session,
            time_ns: at.time_ns,
            parts: message.parts(),
        };
        match &mut self.linking {
            Linking::Here(links) => links.publish(&publishing),
            Linking::Later(steps) => steps.publish(self.order, publishing),
        }
    }

    /// More bytes of the publisher's leg: acknowledgements, retransmissions.
    pub fn add_to_leg(&mut self, publication: PublicationId, message: &Message) {
        match &mut self.linking {
            Linking::Here(links) => links.add_to_leg(publication, &message.parts(), &mut self.events),
            Linking::Later(steps) => steps.add_to_leg(self.order, publication, message.parts()),
        }
    }

    /// The broker refuses a message: it delivers it to nobody from now on.
    pub fn refuse(&mut self, publication: PublicationId) {
        match &mut self.linking {
            Linking::Here(links) => links.refuse(publication),
            Linking::Later(steps) => steps.add(self.order, What::Refuse(publication)),
        }
    }

    /// The broker delivers a message in `exchange`: links it with its publication, where that is in the capture, at `since_ns` or later.
    pub fn deliver_publication(&mut self, exchange: ExchangeId, message: &Message, at: &Moment, since_ns: i64) {
        let kind = self.get(exchange).map_or("", |exchange| exchange.kind);
        let delivery = Delivery { key: Key::of(message), session: at.session, time_ns: at.time_ns, since_ns, kind };
        match &mut self.linking {
            Linking::Here(links) => {
                let Some((publication, delay_ns)) = links.deliver(&delivery, &mut self.events) else { return };
                let Some(exchange) = self.get_mut(exchange) else { return };
                (exchange.parent, exchange.delay_ns) = (Some(publication), Some(delay_ns));
            }
            Linking::Later(steps) => steps.add(self.order, What::Deliver(delivery)),
        }
    }

    /// From now on publications are linked by a [`Linker`]. What deliveries tell of their exchanges is then in no row.
    pub fn link_later(&mut self) {
        self.linking = Linking::Later(Steps::default());
    }

    /// The messages that follow are of this packet, by number among all packets.
    #[inline]
    pub fn set_order(&mut self, order: u64) {
        self.order = order;
    }

    /// The packet that messages are of.
    #[must_use]
    pub const fn order(&self) -> u64 {
        self.order
    }

    /// The capture ends: what still waits for a delivery got none.
    pub(super) fn finish_links(&mut self) {
        if let Linking::Here(links) = &mut self.linking {
            self.events.extend(links.finish());
        }
    }
}

/// What a thread has found, as far as it is not linked yet.
#[derive(Debug, Default)]
struct Waiting {
    /// In the order of their packets.
    steps: VecDeque<Step>,
    /// Number of the first packet that the thread may not have come to.
    until: u64,
    /// The numbers here of the thread's publications that may still be delivered; how many came before these.
    publications: VecDeque<PublicationId>,
    forgotten: u64,
    /// For the thread's sessions.
    events: Vec<Event>,
}

/// Links what several threads find in parts of the sessions, in the order of the capture.
#[derive(Debug)]
pub struct Linker {
    links: Links,
    parts: Vec<(Part, Waiting)>,
}

impl Linker {
    /// For threads that take these parts of the sessions.
    pub fn new(parts: impl Iterator<Item = Part>) -> Self {
        Self { links: Links::default(), parts: parts.map(|part| (part, Waiting::default())).collect() }
    }

    /// Takes what a thread found in all its packets before number `until`, and gives what is known for its sessions by now.
    pub fn hand_in(&mut self, part: Part, exchanges: &mut Exchanges, until: u64) -> Vec<Event> {
        let Linking::Later(found) = &mut exchanges.linking else { return Vec::new() };
        if let Some((_, waiting)) = self.parts.get_mut(part.index() as usize) {
            waiting.steps.extend(found.hand_over());
            waiting.until = until;
        }
        self.link();
        self.parts.get_mut(part.index() as usize).map_or_else(Vec::new, |(_, waiting)| std::mem::take(&mut waiting.events))
    }

    /// Links all before the first packet that a thread may not have come to.
    fn link(&mut self) {
        let until = self.parts.iter().map(|(_, waiting)| waiting.until).min().unwrap_or(0);
        let mut events = Vec::new();
        loop {
            let earliest = self.parts.iter_mut().map(|(_, waiting)| waiting).min_by_key(|waiting| waiting.order());
            let Some(waiting) = earliest.filter(|waiting| waiting.order() < until) else { return };
            waiting.link(&mut self.links, &mut events);
            events.drain(..).for_each(|event| tell(&mut self.parts, event));
        }
    }

    /// The capture has ended, for all threads: what is left for the sessions.
    pub fn finish(mut self) -> impl Iterator<Item = Event> {
        let undelivered: Vec<Event> = self.links.finish().collect();
        self.parts.into_iter().flat_map(|(_, waiting)| waiting.events).chain(undelivered)
    }
}

/// Keeps an event for the thread whose session it is of.
fn tell(parts: &mut [(Part, Waiting)], event: Event) {
    let of = parts.iter_mut().find(|(part, _)| part.has(event.session()));
    of.into_iter().for_each(|(_, waiting)| waiting.events.push(event));
}

impl Waiting {
    /// The packet of the next step; behind all, where there is none.
    fn order(&self) -> u64 {
        self.steps.front().map_or(u64::MAX, |step| step.order)
    }

    /// The number among all of one that the thread has numbered, as long as it may still be delivered.
    fn publication(&self, of_thread: PublicationId) -> Option<PublicationId> {
        let place = usize::try_from(of_thread.before().checked_sub(self.forgotten)?).ok()?;
        self.publications.get(place).copied()
    }

    /// Takes the next step.
    fn link(&mut self, links: &mut Links, events: &mut Vec<Event>) {
        let Some(step) = self.steps.pop_front() else { return };
        match &step.what {
            What::Publish(publishing) => {
                self.publications.push_back(links.publish(publishing));
                while self.publications.front().is_some_and(|publication| !links.is_waiting(*publication)) {
                    self.publications.pop_front();
                    self.forgotten += 1;
                }
            }
            What::AddToLeg(publication, parts) => {
                self.publication(*publication).into_iter().for_each(|publication| links.add_to_leg(publication, parts, events));
            }
            What::Refuse(publication) => self.publication(*publication).into_iter().for_each(|publication| links.refuse(publication)),
            What::Deliver(delivery) => {
                links.deliver(delivery, events);
            }
        }
    }
}
