//! Links a publisher's message with the broker's deliveries of it: other sessions, other identifiers, perhaps another QoS; the same topic and
//! payload (trap 32).

use super::{Event, ExchangeId, Exchanges, Moment};
use crate::message::{Message, Parts, Side};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Publications remembered at most.
const PUBLICATIONS: usize = 1 << 14;
/// How long a publication waits for deliveries, in capture time.
const WAIT_NS: i64 = 120_000_000_000;

/// Names a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicationId(u64);

#[derive(Debug)]
struct Publication {
    key: (u64, u64),
    /// The next publication of the same key.
    next: Option<u64>,
    exchange: u64,
    session: u32,
    time_ns: i64,
    parts: Parts,
    delivered_to: Vec<u32>,
}

/// Publications that may still be delivered.
#[derive(Debug, Default)]
pub struct Links {
    /// First and last publication of a topic and payload.
    by_key: FxHashMap<(u64, u64), (u64, u64)>,
    publications: VecDeque<Publication>,
    /// Number of the first of `publications`.
    first: u64,
}

impl Links {
    fn get_mut(&mut self, number: u64) -> Option<&mut Publication> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.publications.get_mut(at)
    }

    fn add(&mut self, publication: Publication) -> u64 {
        let number = self.first + self.publications.len() as u64;
        let key = publication.key;
        self.publications.push_back(publication);
        let (_, last) = self.by_key.entry(key).or_insert((number, number));
        let before = std::mem::replace(last, number);
        if before != number {
            if let Some(before) = self.get_mut(before) {
                before.next = Some(number);
            }
        }
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
        let number = self.first;
        self.first += 1;
        match publication.next {
            Some(next) => {
                if let Some((first, _)) = self.by_key.get_mut(&publication.key) {
                    *first = next;
                }
            }
            None => {
                if self.by_key.get(&publication.key).is_some_and(|(_, last)| *last == number) {
                    self.by_key.remove(&publication.key);
                }
            }
        }
        Some(publication)
    }

    /// The earliest publication of `key` that was not delivered to `session` yet.
    fn find(&mut self, key: (u64, u64), session: u32) -> Option<&mut Publication> {
        let mut number = self.by_key.get(&key)?.0;
        loop {
            let publication = self.get_mut(number)?;
            if !publication.delivered_to.contains(&session) {
                return self.get_mut(number);
            }
            number = publication.next?;
        }
    }
}

fn key(message: &Message) -> (u64, u64) {
    (message.subject_hash, message.payload_digest)
}

impl Exchanges {
    /// A publisher's message reaches the broker in `exchange`: deliveries of it may follow.
    pub fn publish(&mut self, exchange: ExchangeId, message: &Message, at: &Moment) -> PublicationId {
        while let Some(old) = self.links.remove_old(at.time_ns) {
            self.report_undelivered(&old);
        }
        PublicationId(self.links.add(Publication {
            key: key(message),
            next: None,
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
        for &session in &publication.delivered_to {
            self.events.push(Event::PublisherLeg { session, from: Side::Server, parts });
        }
    }

    /// The broker delivers a message in `exchange`: links it with its publication, where that is in the capture.
    pub fn deliver_publication(&mut self, exchange: ExchangeId, message: &Message, at: &Moment) {
        let Some(publication) = self.links.find(key(message), at.session) else { return };
        publication.delivered_to.push(at.session);
        let (number, delay_ns, parts) = (publication.exchange, at.time_ns - publication.time_ns, publication.parts);
        self.events.push(Event::PublisherLeg { session: at.session, from: Side::Server, parts });
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
