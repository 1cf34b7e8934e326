//! Links a publisher's message with the broker's deliveries of it: other sessions, other identifiers, perhaps another QoS; the same topic and
//! payload (trap 32).

use super::{Event, Sample, Timing};
use crate::message::{Message, Parts, Side};
use rustc_hash::FxHashMap;
use std::num::NonZeroU64;

/// Publications remembered at most.
const PUBLICATIONS: usize = 1 << 14;
/// How long a publication waits for deliveries, in capture time.
const WAIT_NS: i64 = 120_000_000_000;
/// Subscribers' sessions that are noted in the publication itself.
const RECEIVERS: usize = 3;

/// Names a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicationId(NonZeroU64);

impl PublicationId {
    /// The one with so many before it.
    pub(super) fn behind(published: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(published))
    }

    /// How many are before it.
    pub(super) fn before(self) -> u64 {
        self.0.get() - 1
    }
}

/// Topic and payload, as hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Key {
    subject: u64,
    payload: u64,
}

impl Key {
    pub(super) const fn of(message: &Message) -> Self {
        Self { subject: message.subject_hash, payload: message.payload_digest }
    }

    /// Number of its list, one of as many as there are publications.
    const fn list(self) -> usize {
        let mixed = (self.subject ^ self.payload.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (u64::BITS - PUBLICATIONS.ilog2())) as usize
    }
}

/// A publisher's message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publishing {
    pub(super) key: Key,
    pub(super) exchange: u64,
    pub(super) session: u32,
    pub(super) time_ns: i64,
    pub(super) parts: Parts,
}

/// Adds more bytes of a publisher's leg.
pub(super) fn add_parts(leg: &mut Parts, parts: &Parts) {
    leg.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
}

/// A broker's message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    pub(super) key: Key,
    pub(super) session: u32,
    pub(super) time_ns: i64,
    /// When its publication was sent, at the earliest.
    pub(super) since_ns: i64,
    /// Kind of its exchange.
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, Copy, Default)]
struct Publication {
    key: Key,
    /// Number of the one before it in its list, which may be forgotten already; 0 where it is the first.
    before: u64,
    exchange: u64,
    time_ns: i64,
    parts: Parts,
    session: u32,
    /// Sessions that it was delivered to, the first few of them.
    delivered_to: [u32; RECEIVERS],
    deliveries: u32,
}

/// What is to be known of a publication when it is forgotten: kept apart, so that publications are not looked at again only to be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nobody got it so far; who published it.
    Undelivered(u32),
    /// Nobody got it, and nobody will: its receiver refused it.
    Refused(u32),
    Delivered,
    /// More subscribers got it than are noted in it.
    DeliveredToMany,
}

/// Publications that may still be delivered, by numbers from 1 on: the ones from `first` to before `next`, each in the place that its number tells,
/// where another one was before. Each list leads from its newest publication to older ones, and ends at the first that is forgotten: so nothing has
/// to be looked up in order to forget. Publications are listed when a delivery is looked for: where the capture shows none, they never are.
#[derive(Debug)]
pub struct Links {
    lists: Vec<u64>,
    publications: Vec<Publication>,
    times_ns: Vec<i64>,
    fates: Vec<Fate>,
    first: u64,
    next: NonZeroU64,
    /// The first one that is in no list yet.
    unlisted: u64,
    /// Subscribers' sessions beyond the first few, by publication.
    more: FxHashMap<u64, Vec<u32>>,
    /// Publications that were forgotten and delivered to nobody, by publisher's session.
    undelivered: Vec<u64>,
}

impl Default for Links {
    fn default() -> Self {
        let (lists, publications, times_ns, fates, more, undelivered) = Default::default();
        Self { lists, publications, times_ns, fates, first: 1, next: NonZeroU64::MIN, unlisted: 1, more, undelivered }
    }
}

/// Where a publication stands.
const fn place(number: u64) -> usize {
    number as usize % PUBLICATIONS
}

/// Puts a value in its place, or behind the last one while places are still being taken for the first time.
#[inline]
fn put<T>(values: &mut Vec<T>, place: usize, value: T) {
    match values.get_mut(place) {
        Some(old) => *old = value,
        None => values.push(value),
    }
}

impl Links {
    fn is_known(&self, number: u64) -> bool {
        (self.first..self.next.get()).contains(&number)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Publication> {
        if !self.is_known(number) {
            return None;
        }
        self.publications.get_mut(place(number))
    }

    #[inline]
    fn add(&mut self, publication: Publication) -> PublicationId {
        let id = PublicationId(self.next);
        let number = id.0.get();
        self.next = self.next.saturating_add(1);
        if self.publications.is_empty() {
            // the place of number 0, which there is not, so that the first one's place is behind it
            self.publications.push(Publication::default());
            self.times_ns.push(0);
            self.fates.push(Fate::Delivered);
        }
        put(&mut self.times_ns, place(number), publication.time_ns);
        put(&mut self.fates, place(number), Fate::Undelivered(publication.session));
        put(&mut self.publications, place(number), publication);
        id
    }

    /// Puts the publications that came since a delivery was looked for last in their lists.
    fn list(&mut self) {
        self.lists.resize(PUBLICATIONS, 0);
        for number in self.unlisted.max(self.first)..self.next.get() {
            let Some(publication) = self.publications.get_mut(place(number)) else { continue };
            let Some(newest) = self.lists.get_mut(publication.key.list()) else { continue };
            publication.before = std::mem::replace(newest, number);
        }
        self.unlisted = self.next.get();
    }

    /// Forgets the oldest publication, where it has waited long enough or there is no room for one more. Returns what became of it.
    #[inline]
    fn forget_old(&mut self, now_ns: i64) -> Option<Fate> {
        let is_full = self.next.get() - self.first >= PUBLICATIONS as u64;
        let oldest_ns = self.times_ns.get(place(self.first)).filter(|_| self.is_known(self.first))?;
        if !is_full && now_ns - oldest_ns <= WAIT_NS {
            return None;
        }
        self.forget_oldest()
    }

    fn forget_oldest(&mut self) -> Option<Fate> {
        let number = self.first;
        let fate = *self.fates.get(place(number)).filter(|_| self.is_known(number))?;
        self.first += 1;
        if fate == Fate::DeliveredToMany {
            self.more.remove(&number);
        }
        Some(fate)
    }

    /// Counts what became of a publication, to be told at the capture's end: most publications in captures without a subscriber are delivered to nobody.
    #[inline]
    fn count(&mut self, fate: Fate) {
        let (Fate::Undelivered(session) | Fate::Refused(session)) = fate else { return };
        let at = session as usize;
        if at >= self.undelivered.len() {
            self.undelivered.resize(at + 1, 0);
        }
        if let Some(publications) = self.undelivered.get_mut(at) {
            *publications += 1;
        }
    }

    /// The sessions that a publication was delivered to.
    fn receivers<'a>(&'a self, number: u64, publication: &'a Publication) -> impl Iterator<Item = u32> + 'a {
        let deliveries = publication.deliveries as usize;
        let more = if deliveries > RECEIVERS { self.more.get(&number) } else { None };
        publication.delivered_to.iter().take(deliveries).chain(more.into_iter().flatten()).copied()
    }

    /// Takes the earliest publication of a delivery's key behind the last that was delivered to its session: it is delivered now.
    fn find(&mut self, delivery: &Delivery) -> Option<Publication> {
        let Delivery { key, session, since_ns, .. } = *delivery;
        self.list();
        let mut found = None;
        let mut number = *self.lists.get(key.list())?;
        while self.is_known(number) {
            let publication = self.publications.get(place(number))?;
            if publication.key == key && !self.is_refused(number) {
                if publication.time_ns < since_ns || self.receivers(number, publication).any(|receiver| receiver == session) {
                    break;
                }
                found = Some(number);
            }
            number = publication.before;
        }
        self.note_delivery(found?, session)
    }

    fn is_refused(&self, number: u64) -> bool {
        matches!(self.fates.get(place(number)), Some(Fate::Refused(_)))
    }

    fn note_delivery(&mut self, number: u64, session: u32) -> Option<Publication> {
        let (publication, fate) = (self.publications.get_mut(place(number))?, self.fates.get_mut(place(number))?);
        match publication.delivered_to.get_mut(publication.deliveries as usize) {
            Some(receiver) => (*receiver, *fate) = (session, Fate::Delivered),
            None => {
                self.more.entry(number).or_default().push(session);
                *fate = Fate::DeliveredToMany;
            }
        }
        publication.deliveries += 1;
        Some(*publication)
    }
}

impl Links {
    /// A publisher's message reaches the broker: deliveries of it may follow.
    pub(super) fn publish(&mut self, publishing: &Publishing) -> PublicationId {
        while let Some(fate) = self.forget_old(publishing.time_ns) {
            self.count(fate);
        }
        let Publishing { key, exchange, session, time_ns, parts } = *publishing;
        self.add(Publication { key, exchange, session, time_ns, parts, ..Publication::default() })
    }

    /// More bytes of the publisher's leg: acknowledgements, retransmissions. Tells the sessions that it was delivered to.
    pub(super) fn add_to_leg(&mut self, publication: PublicationId, parts: &Parts, events: &mut Vec<Event>) {
        let number = publication.0.get();
        let Some(publication) = self.get_mut(number) else { return };
        add_parts(&mut publication.parts, parts);
        if publication.deliveries == 0 {
            return;
        }
        let publication = *publication;
        let leg = |session| Event::PublisherLeg { session, from: Side::Server, publisher: publication.session, parts: *parts };
        events.extend(self.receivers(number, &publication).map(leg));
    }

    /// The broker refuses a message. What it delivered all the same stays linked.
    pub(super) fn refuse(&mut self, publication: PublicationId) {
        let number = publication.0.get();
        let fate = if self.is_known(number) { self.fates.get_mut(place(number)) } else { None };
        if let Some(&mut Fate::Undelivered(session)) = fate {
            fate.into_iter().for_each(|fate| *fate = Fate::Refused(session));
        }
    }

    /// The broker delivers a message: links it with its publication, where that is in the capture, and tells the session. Returns the publication's
    /// exchange and the time since.
    pub(super) fn deliver(&mut self, delivery: &Delivery, events: &mut Vec<Event>) -> Option<(u64, i64)> {
        let Delivery { session, time_ns, kind, .. } = *delivery;
        let publication = self.find(delivery)?;
        let Publication { exchange, parts, session: publisher, .. } = publication;
        let delay_ns = time_ns - publication.time_ns;
        let sample = Sample { timing: Some(Timing::Delay), kind, time_ns: delay_ns, is_retransmitted: false };
        events.extend([Event::PublisherLeg { session, from: Side::Server, publisher, parts }, Event::Sample { session, sample }]);
        Some((exchange, delay_ns))
    }

    /// The capture ends: what still waits for a delivery got none.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Event> {
        while let Some(fate) = self.forget_oldest() {
            self.count(fate);
        }
        let undelivered = (0..).zip(std::mem::take(&mut self.undelivered)).filter(|(_, publications)| *publications > 0);
        undelivered.map(|(session, publications)| Event::Undelivered { session, publications })
    }

    /// Whether a publication may still be delivered.
    pub(super) fn is_waiting(&self, publication: PublicationId) -> bool {
        self.is_known(publication.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(subject: u64, exchange: u64, time_ns: i64) -> Publication {
        Publication { key: Key { subject, payload: 1 }, exchange, time_ns, session: 3, ..Publication::default() }
    }

    fn deliver(links: &mut Links, subject: u64, session: u32) -> Option<u64> {
        deliver_since(links, subject, session, 0)
    }

    fn deliver_since(links: &mut Links, subject: u64, session: u32, since_ns: i64) -> Option<u64> {
        let delivery = Delivery { key: Key { subject, payload: 1 }, session, time_ns: 0, since_ns, kind: "" };
        links.find(&delivery).map(|publication| publication.exchange)
    }

    #[test]
    fn equal_messages_are_delivered_in_order_to_each_subscriber_once() {
        let mut links = Links::default();
        for (subject, exchange) in [(5, 10), (6, 11), (5, 12)] {
            links.add(publication(subject, exchange, 0));
        }

        let deliveries = [(5, 7), (5, 8), (5, 7), (6, 7), (5, 7), (9, 7)].map(|(subject, session)| deliver(&mut links, subject, session));

        assert_eq!([Some(10), Some(10), Some(12), Some(11), None, None], deliveries);
    }

    #[test]
    fn publications_before_a_time_can_be_left_out() {
        let mut links = Links::default();
        for (exchange, time_ns) in [(10, 1), (11, 2), (12, 3)] {
            links.add(publication(5, exchange, time_ns));
        }

        assert_eq!([None, Some(11), Some(12), None], [4, 2, 2, 2].map(|since_ns| deliver_since(&mut links, 5, 7, since_ns)));
    }

    #[test]
    fn what_is_refused_is_delivered_to_nobody() {
        let mut links = Links::default();
        let ids = [10, 11, 12].map(|exchange| links.add(publication(5, exchange, 0)));
        links.refuse(ids[1]);

        assert_eq!([Some(10), Some(12), None], [7, 7, 7].map(|session| deliver(&mut links, 5, session)));
        links.refuse(ids[2]);
        assert_eq!([Some(10), Some(12), None], [8, 8, 8].map(|session| deliver(&mut links, 5, session)));
        assert_eq!([Fate::Delivered, Fate::Refused(3), Fate::Delivered].map(Some), [(); 3].map(|()| links.forget_oldest()));
    }

    #[test]
    fn any_number_of_subscribers_gets_a_message_once() {
        let mut links = Links::default();
        links.add(publication(5, 10, 0));

        for _ in 0..2 {
            let first_time = (0..9).map(|session| deliver(&mut links, 5, session)).collect::<Vec<_>>();
            assert!(first_time.iter().all(|exchange| *exchange == Some(10)) || first_time.iter().all(Option::is_none));
        }
        assert_eq!((None, Some(Fate::DeliveredToMany), true), (deliver(&mut links, 5, 8), links.forget_oldest(), links.more.is_empty()));
    }

    #[test]
    fn what_has_waited_long_enough_is_forgotten() {
        let mut links = Links::default();
        links.add(publication(5, 10, 0));
        links.add(publication(5, 11, WAIT_NS));

        assert_eq!(Some(Fate::Undelivered(3)), links.forget_old(WAIT_NS + 1));
        assert_eq!((None, Some(11)), (links.forget_old(WAIT_NS + 1), deliver(&mut links, 5, 7)));
    }

    #[test]
    fn the_oldest_makes_room_when_all_places_are_taken() {
        let mut links = Links::default();
        let last = 3 * PUBLICATIONS as u64;
        let forgotten = (1..=last).filter(|&exchange| {
            let is_forgotten = links.forget_old(0).is_some();
            links.add(publication(exchange, exchange, 0));
            is_forgotten
        });

        assert_eq!(2 * PUBLICATIONS, forgotten.count());
        let oldest = last - PUBLICATIONS as u64;
        assert_eq!([None, Some(oldest + 1), Some(last)], [oldest, oldest + 1, last].map(|subject| deliver(&mut links, subject, 7)));
    }
}
