//! Links a publisher's message with the broker's deliveries of it: other sessions, other identifiers, perhaps another QoS; the same topic and
//! payload (trap 32).

use super::{Event, ExchangeId, Exchanges, Moment};
use crate::message::{Message, Parts, Side};
use std::collections::VecDeque;

/// Publications remembered at most.
const PUBLICATIONS: usize = 1 << 14;
/// Lists of publications, by the leading bits of their hash.
const LISTS: usize = 2 * PUBLICATIONS;
/// How long a publication waits for deliveries, in capture time.
const WAIT_NS: i64 = 120_000_000_000;

/// Names a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicationId(u64);

/// Topic and payload, as hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    subject: u64,
    payload: u64,
}

impl Key {
    const fn of(message: &Message) -> Self {
        Self { subject: message.subject_hash, payload: message.payload_digest }
    }

    const fn list(self) -> usize {
        let mixed = (self.subject ^ self.payload.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (u64::BITS - LISTS.ilog2())) as usize
    }
}

#[derive(Debug)]
struct Publication {
    key: Key,
    /// The one before it in its list; it may be forgotten already.
    before: Option<u64>,
    exchange: u64,
    session: u32,
    time_ns: i64,
    parts: Parts,
    delivered_to: Vec<u32>,
}

/// Publications that may still be delivered, the oldest first. Each list leads from its newest publication to older ones, and ends at the first
/// that is forgotten: so nothing has to be looked up in order to forget.
#[derive(Debug, Default)]
pub struct Links {
    lists: Vec<Option<u64>>,
    publications: VecDeque<Publication>,
    /// Number of the first of `publications`.
    first: u64,
}

impl Links {
    fn get_mut(&mut self, number: u64) -> Option<&mut Publication> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.publications.get_mut(at)
    }

    fn add(&mut self, mut publication: Publication) -> u64 {
        let number = self.first + self.publications.len() as u64;
        if self.lists.is_empty() {
            self.lists.resize(LISTS, None);
        }
        if let Some(newest) = self.lists.get_mut(publication.key.list()) {
            publication.before = newest.replace(number);
        }
        self.publications.push_back(publication);
        number
    }

    /// The oldest publication, where it has waited long enough or there are too many.
    fn remove_old(&mut self, now_ns: i64) -> Option<Publication> {
        let oldest = self.publications.front()?;
        if self.publications.len() <= PUBLICATIONS && now_ns - oldest.time_ns <= WAIT_NS {
            return None;
        }
        self.remove_oldest()
    }

    fn remove_oldest(&mut self) -> Option<Publication> {
        let publication = self.publications.pop_front()?;
        self.first += 1;
        Some(publication)
    }

    /// The earliest publication of `key` behind the last that was delivered to `session`.
    fn find(&mut self, key: Key, session: u32) -> Option<&mut Publication> {
        let mut found = None;
        let mut next = *self.lists.get(key.list())?;
        while let Some((number, publication)) = next.and_then(|number| Some((number, self.get_mut(number)?))) {
            if publication.key == key {
                if publication.delivered_to.contains(&session) {
                    break;
                }
                found = Some(number);
            }
            next = publication.before;
        }
        self.get_mut(found?)
    }
}

impl Exchanges {
    /// A publisher's message reaches the broker in `exchange`: deliveries of it may follow.
    pub fn publish(&mut self, exchange: ExchangeId, message: &Message, at: &Moment) -> PublicationId {
        while let Some(old) = self.links.remove_old(at.time_ns) {
            self.report_undelivered(&old);
        }
        PublicationId(self.links.add(Publication {
            key: Key::of(message),
            before: None,
            exchange: exchange.number,
            session: at.session,
            time_ns: at.time_ns,
            parts: message.parts(),
            delivered_to: Vec::new(),
        }))
    }

    /// More bytes of the publisher's leg: acknowledgements, retransmissions.
    pub fn add_to_leg(&mut self, publication: PublicationId, message: &Message) {
        let parts = message.parts();
        let Some(publication) = self.links.get_mut(publication.0) else { return };
        for (sum, part) in publication.parts.iter_mut().zip(parts) {
            *sum += part;
        }
        let publisher = publication.session;
        for &session in &publication.delivered_to {
            self.events.push(Event::PublisherLeg { session, from: Side::Server, publisher, parts });
        }
    }

    /// The broker delivers a message in `exchange`: links it with its publication, where that is in the capture.
    pub fn deliver_publication(&mut self, exchange: ExchangeId, message: &Message, at: &Moment) {
        let Some(publication) = self.links.find(Key::of(message), at.session) else { return };
        publication.delivered_to.push(at.session);
        let (number, delay_ns, parts) = (publication.exchange, at.time_ns - publication.time_ns, publication.parts);
        self.events.push(Event::PublisherLeg { session: at.session, from: Side::Server, publisher: publication.session, parts });
        self.deliver(exchange, number, delay_ns);
    }

    /// The capture ends: what still waits for a delivery got none.
    pub(super) fn finish_links(&mut self) {
        while let Some(old) = self.links.remove_oldest() {
            self.report_undelivered(&old);
        }
    }

    fn report_undelivered(&mut self, publication: &Publication) {
        if publication.delivered_to.is_empty() {
            self.events.push(Event::Undelivered { session: publication.session });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(subject: u64, exchange: u64, time_ns: i64) -> Publication {
        let key = Key { subject, payload: 1 };
        Publication { key, before: None, exchange, session: 0, time_ns, parts: Parts::default(), delivered_to: Vec::new() }
    }

    fn deliver(links: &mut Links, subject: u64, session: u32) -> Option<u64> {
        let found = links.find(Key { subject, payload: 1 }, session)?;
        found.delivered_to.push(session);
        Some(found.exchange)
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
    fn what_has_waited_long_enough_is_forgotten() {
        let mut links = Links::default();
        links.add(publication(5, 10, 0));
        links.add(publication(5, 11, WAIT_NS));

        assert_eq!(Some(10), links.remove_old(WAIT_NS + 1).map(|old| old.exchange));
        assert_eq!((None, Some(11)), (links.remove_old(WAIT_NS + 1).map(|old| old.exchange), deliver(&mut links, 5, 7)));
    }
}
