//! Adds up, session by session, as long as the capture lasts; never divides.

mod bytes;
mod counts;
mod direction;
mod entries;
mod kinds;
mod samples;
mod telling;

pub use bytes::{add, add_sums, ByteSums, PartSums};
pub use counts::{without_message, Choices, Session};
pub use direction::Direction;
pub use entries::{Before, Beginning, Control, Count, FieldSection, Is, Why, Words};
pub use kinds::{Kind, KindCount, KindId, Kinds};
pub use samples::{Measured, Samples};

use crate::arena::Arena;
use crate::exchanges::{Event, Timing};
use crate::message::Side;
use crate::note::Notes;
use crate::protocols;
use crate::schema::{directions, kinds as kinds_table, sessions, timings};
use crate::share::Part;
use telling::protection;

/// Sessions while packets come, all of them or a part: numbered among all, as far as other parts are not asked.
#[derive(Debug)]
pub struct Ledger {
    sessions: Arena<Session>,
    part: Part,
    /// See [`Beginning::order`].
    orders: Vec<u64>,
}

impl Ledger {
    /// No session yet.
    #[must_use]
    pub fn new(part: Part) -> Self {
        Self { sessions: Arena::default(), part, orders: Vec::new() }
    }

    /// Begins a session: the next of its part.
    pub fn begin(&mut self, number: u32, begins: &Beginning) {
        self.orders.push(begins.order);
        self.sessions.add(|_| Session::new(number, begins));
    }

    /// A session by its number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Session> {
        self.sessions.get(self.part.place(number))
    }

    /// A session by its number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Session> {
        self.sessions.get_mut(self.part.place(number))
    }
}

/// All sessions of the capture.
#[derive(Debug, Default)]
pub struct Sessions {
    parts: Vec<Arena<Session>>,
    /// Part and place of each session, in the order of their numbers.
    places: Vec<(u32, u32)>,
    kinds: Kinds,
}

impl Sessions {
    /// A session by its number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Session> {
        let (part, place) = *self.places.get(number as usize)?;
        self.parts.get(part as usize)?.get(place)
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Session> {
        let (part, place) = *self.places.get(number as usize)?;
        self.parts.get_mut(part as usize)?.get_mut(place)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All sessions in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = &Session> {
        self.places.iter().filter_map(|(part, place)| self.parts.get(*part as usize)?.get(*place))
    }
}

/// What all sessions add up to: bytes by part, of the side that sends the data where that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// Data messages to the receivers.
    pub data_messages: u64,
    /// Their data bytes.
    pub data_bytes: u64,
    /// Bytes of messages, and those that belong to none.
    pub parts: PartSums,
    /// Bytes of frames without a message.
    pub control_parts: PartSums,
}

impl Sessions {
    /// The capture has ended: sessions of all parts, with the kinds of each part, are numbered as they began, in `notes` too; `events` are what was told
    /// when all parts had ended. Kinds get their names, and the publishers' CONNECT and CONNACK count for the sessions of their subscribers (metrics.md,
    /// formula 4).
    #[must_use]
    pub fn of(parts: Vec<(Ledger, Kinds)>, events: impl Iterator<Item = Event>, notes: &mut Notes) -> Self {
        let mut all = Self::default();
        let mut begun: Vec<(u64, u32, u32)> = Vec::new();
        let mut ledgers: Vec<Ledger> = Vec::new();
        for (part, (mut ledger, kinds)) in (0..).zip(parts) {
            let numbers: Vec<KindId> = kinds.all().map(|kind| all.kinds.number(kind)).collect();
            ledger.sessions.iter_mut().for_each(|session| session.renumber_kinds(&numbers));
            begun.extend(ledger.orders.iter().zip(0..).map(|(order, place)| (*order, part, place)));
            ledgers.push(ledger);
        }
        for event in events {
            let of = ledgers.iter_mut().find(|ledger| ledger.part.has(event.session()));
            of.and_then(|ledger| ledger.get_mut(event.session())).into_iter().for_each(|session| session.take(&event, Side::Server));
        }
        begun.sort_unstable();
        all.places = begun.into_iter().map(|(_, part, place)| (part, place)).collect();
        all.parts = ledgers.into_iter().map(|ledger| ledger.sessions).collect();
        all.renumber(notes);
        all.add_publishers();
        all
    }

    /// Gives sessions their numbers among all, also where others name them.
    fn renumber(&mut self, notes: &mut Notes) {
        let mut numbers: Vec<u32> = Vec::new();
        for (number, session) in (0..).zip(self.all()) {
            let before = session.row.session as usize;
            numbers.resize(numbers.len().max(before + 1), 0);
            numbers.get_mut(before).into_iter().for_each(|place| *place = number);
        }
        let number = |number: u32| numbers.get(number as usize).copied().unwrap_or(number);
        self.parts.iter_mut().flat_map(Arena::iter_mut).for_each(|session| session.close(number));
        *notes = std::mem::take(notes).renumbered(number);
    }

    fn add_publishers(&mut self) {
        for number in 0..u32::try_from(self.len()).unwrap_or(u32::MAX) {
            let Some(session) = self.get(number) else { continue };
            let mut parts = PartSums::default();
            let publishers = session.publishers.iter().filter_map(|&publisher| self.get(publisher));
            for opening in publishers.flat_map(|publisher| publisher.opening_parts(&self.kinds)) {
                add_sums(&mut parts, &opening);
            }
            if let Some(session) = self.get_mut(number) {
                session.add_publishers(&parts);
            }
        }
    }

    /// A session's rows of the table `kinds`.
    pub fn kind_rows<'a>(&'a self, session: &'a Session) -> impl Iterator<Item = kinds_table::Row> + 'a {
        session.kinds().filter_map(|(count, other)| {
            let kind = self.kinds.get(count.kind)?;
            let mut parts = count.parts.get();
            other.into_iter().for_each(|other| add_sums(&mut parts, &other.parts.get()));
            Some(kinds_table::Row {
                session: session.row.session,
                direction: count.from.direction(),
                protocol: kind.protocol,
                kind: kind.kind,
                variant: kind.variant,
                messages: count.messages() + other.map_or(0, KindCount::messages),
                message_bytes_min: count.bytes_min.min(other.map_or(u32::MAX, |other| other.bytes_min)),
                message_bytes_max: count.bytes_max.max(other.map_or(0, |other| other.bytes_max)),
                parts: parts.to_vec(),
            })
        })
    }

    /// All sessions added up.
    #[must_use]
    pub fn total(&self) -> Total {
        let mut total = Total::default();
        for session in self.all() {
            let [client, server] = &session.directions;
            let main = if session.data_sender() == Side::Client { client } else { server };
            total.data_messages += main.data.messages;
            total.data_bytes += main.data.bytes;
            for direction in &session.directions {
                add_sums(&mut total.control_parts, &direction.control_parts.get());
                add_sums(&mut total.parts, direction.unassigned_parts.as_deref().unwrap_or(&[0; 9]));
            }
            add_sums(&mut total.parts, &session.parts_of(|_| true));
        }
        total
    }

    /// Numbers of the `count` sessions with the most bytes on the wire, in the order of their numbers.
    #[must_use]
    pub fn largest(&self, count: usize) -> Vec<u32> {
        let mut sizes: Vec<(u64, u32)> = self.all().map(|session| (session.message_bytes(), session.row.session)).collect();
        sizes.sort_unstable_by_key(|&(bytes, number)| (std::cmp::Reverse(bytes), number));
        let mut numbers: Vec<u32> = sizes.into_iter().take(count).map(|(_, number)| number).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl Session {
    /// Bytes on the wire of its messages.
    fn message_bytes(&self) -> u64 {
        self.parts_of(|_| true).iter().sum()
    }

    /// Who sends the data: the side with more data messages; where they are encrypted, the side whose records hold more, since padding can
    /// make an acknowledgement as long as a small message (trap 86).
    #[must_use]
    pub fn data_sender(&self) -> Side {
        let [client, server] = &self.directions;
        let [[.., hidden_by_client], [.., hidden_by_server]] = [Side::Client, Side::Server].map(|side| self.data_parts(side));
        if (hidden_by_client, client.data.messages) > (hidden_by_server, server.data.messages) {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Its row of the table `sessions`.
    #[must_use]
    pub fn session_row(&self) -> sessions::Row {
        let mut row = self.row.clone();
        row.receiver = match self.data_sender() {
            Side::Client => "server",
            Side::Server => "client",
        };
        if row.security.get().is_none() {
            let security = protocols::PROTOCOLS.iter().find(|known| known.is_security && known.name == row.protocol);
            let words = protection(row.version.get(), row.cipher_suite.get());
            match security {
                None if row.time1_security_ns.is_none() => row.security.set("none"),
                // its records tell no more where their handshake is not in the capture
                Some(security) if words.is_empty() => row.security.set(&security.name.to_uppercase()),
                _ => row.security.set(&words),
            }
        }
        row
    }

    /// Its rows of the table `directions`.
    pub fn direction_rows(&self) -> impl Iterator<Item = directions::Row> + '_ {
        self.directions.iter().zip([Side::Client, Side::Server]).map(|(sums, from)| directions::Row {
            session: self.row.session,
            direction: from.direction(),
            data_messages: sums.data.messages,
            data_bytes: sums.data.bytes,
            data_saved_bytes: sums.data_saved_bytes,
            data_first_ns: sums.data.times_ns().map(|[first_ns, _]| first_ns),
            data_last_ns: sums.data.times_ns().map(|[_, last_ns]| last_ns),
            data_last_ack_ns: sums.data.last_ack_ns,
            is_ack_expected: sums.data.is_ack_expected(),
            received_until_time2: self.received_until_time2(from).to_vec(),
            data_parts: self.data_parts(from).to_vec(),
            control_parts: sums.control_parts.get().to_vec(),
            control_frames: sums.control_frames,
            publisher_parts: parts_or_none(sums.publisher_parts.as_deref()),
            unassigned_parts: parts_or_none(sums.unassigned_parts.as_deref()),
        })
    }

    /// Its rows of the table `timings`.
    pub fn timing_rows(&self) -> impl Iterator<Item = timings::Row> + '_ {
        let mut measured: Vec<(&'static str, &'static str)> = Vec::new();
        for known in self.measured() {
            for &name in known.timing.names() {
                if !measured.contains(&(name, known.kind)) {
                    measured.push((name, known.kind));
                }
            }
        }
        // last, since they are told later where other threads have publishers
        measured.sort_by_key(|(name, _)| Timing::Delay.names().contains(name));
        measured.into_iter().map(|(name, kind)| self.timing_row(name, kind))
    }

    fn timing_row(&self, name: &'static str, kind: &'static str) -> timings::Row {
        let is_part = |measured: &&Measured| measured.kind == kind && measured.timing.names().contains(&name);
        let samples: Vec<&Samples> = self.measured().iter().filter(is_part).map(|measured| &measured.samples).collect();
        let quantiles = samples::quantiles(&samples, &[0.5, 0.95, 0.99]);
        let quantile = |at: usize| quantiles.get(at).copied().unwrap_or(0);
        let sums = samples::sums(&samples);
        timings::Row {
            session: self.row.session,
            timing: name,
            kind,
            count: sums.count,
            retransmitted: samples.iter().map(|samples| u64::from(samples.retransmitted)).sum(),
            negative: sums.negative,
            sum_ns: sums.sum_ns(),
            squared_deviations_ns2: sums.squared_deviations_ns2(),
            min_ns: if sums.count == 0 { 0 } else { sums.min_ns },
            median_ns: quantile(0),
            p95_ns: quantile(1),
            p99_ns: quantile(2),
            max_ns: if sums.count == 0 { 0 } else { sums.max_ns },
        }
    }
}

fn parts_or_none(parts: Option<&PartSums>) -> Vec<u64> {
    parts.copied().unwrap_or_default().to_vec()
}
