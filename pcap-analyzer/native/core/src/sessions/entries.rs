//! What is put down in the books of sessions: small, so that it can be handed from thread to thread.

use super::bytes::PartSums;
use super::kinds::KindId;
use crate::exchanges::{Acknowledgement, Event, Outcome, Placement, Sample, Timing};
use crate::message::{is_same_word, Message, Parts, Side};
use crate::packet::Endpoint;
use std::sync::Arc;

/// One line of the books.
#[derive(Debug, Clone, Copy)]
pub struct Posting {
    /// The session it is about.
    pub session: u32,
    /// Who sent what it tells of.
    pub from: Side,
    /// What it tells.
    pub entry: Entry,
}

/// What is known of a session when it begins: see the table `sessions`.
#[derive(Debug)]
pub struct Beginning {
    /// The client's endpoint.
    pub client: Endpoint,
    /// The server's endpoint.
    pub server: Endpoint,
    /// Wireshark's stream index.
    pub stream: u32,
    /// "udp" or "tcp".
    pub transport: &'static str,
    /// Its protocol.
    pub protocol: &'static str,
    /// How that was found.
    pub found_by: &'static str,
    /// Name of the input.
    pub file: Option<Arc<str>>,
    /// First frame of its stream, and the frame that showed its protocol.
    pub frames: [u64; 2],
    /// Time of its first frame.
    pub time_ns: i64,
}

/// What is put down. Plain values, so that a line can be written where another one was, without anything to be freed there.
#[derive(Debug, Clone, Copy)]
pub enum Entry {
    /// A message.
    Message(Count),
    /// A frame, or a part of one, that carries no message.
    Control(Control),
    /// A segment filled a hole behind which others waited.
    OutOfOrder,
    /// Header fields of a message.
    FieldSection(FieldSection),
    /// What an exchange tells, or TCP.
    Event(Event),
    /// What its records hold is of this protocol; and, where they were opened, what is known of the security protocol is its protection.
    Carries(&'static str, bool),
    /// What is seldom put down stands beside the lines, in their order.
    Rare,
}

/// What is seldom put down.
#[derive(Debug)]
pub enum Rare {
    /// The session begins.
    Begins(Beginning),
    /// Words that messages tell about the session.
    Tells(Words),
    /// Frames without a message that came before the session began.
    Before(PartSums, u64),
    /// Bytes of the stream that belong to no message, and how many are not in the capture.
    Unassigned(PartSums, u64),
}

/// A frame, or a part of one, that carries no message: SYN, bare ACK, retransmission.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// Its bytes.
    pub parts: Parts,
    /// Whole frames among it.
    pub frames: u32,
    /// Its frame.
    pub frame: u64,
    /// Its time.
    pub time_ns: i64,
    /// Why it carries none.
    pub why: Why,
    /// A time that it completes.
    pub sample: Sample,
}

/// Bytes of a message's header fields.
#[derive(Debug, Clone, Copy)]
pub struct FieldSection {
    /// Number of the message's exchange, see [`Count::exchange`].
    pub exchange: u64,
    /// Before compression.
    pub section_bytes: u32,
    /// After it.
    pub block_bytes: u32,
}

/// Why a frame carries no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There is nothing in it.
    Empty,
    /// TCP sends bytes again.
    Retransmission,
    /// The capture took it twice.
    CapturedTwice,
}

/// What counting needs of a message.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// Number of its kind.
    pub kind: KindId,
    /// Its part in acknowledging data.
    pub acknowledgement: Acknowledgement,
    /// What else it is.
    pub is: Is,
    /// Payload before compression.
    pub sent_bytes: u32,
    /// Bytes inside a record that is not opened, 0 where unknown.
    pub inside_bytes: u32,
    /// Its bytes on the wire.
    pub parts: Parts,
    /// Frame in which it is complete.
    pub frame: u64,
    /// When it is complete.
    pub time_ns: i64,
    /// Number of its exchange, from 1 on; 0 where it has none.
    pub exchange: u64,
    /// What it completes.
    pub told: Told,
}

/// What exchanges, and TCP, tell as a message is placed. Its fields, and those of a [`Sample`], stand in as little room as they take.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    timing: Option<Timing>,
    is_retransmitted: bool,
    /// Whether `tcp_ack_ns` is one.
    is_tcp_ack: bool,
    /// How the message ends an exchange.
    pub ended: Option<Outcome>,
    kind: &'static str,
    time_ns: i64,
    tcp_ack_ns: i64,
}

impl Told {
    /// Takes in what is of the message's session; gives back what there is no room for.
    #[inline]
    pub fn take(&mut self, event: Event, session: u32) -> Option<Event> {
        match event {
            Event::Sample { session: of, sample } if of == session => return self.take_sample(&sample).then_some(event),
            Event::Ended { session: of, outcome } if of == session && self.ended.is_none() => self.ended = Some(outcome),
            other => return Some(other),
        }
        None
    }

    /// Returns whether there is no room for it.
    #[inline]
    fn take_sample(&mut self, sample: &Sample) -> bool {
        if sample.timing == Some(Timing::TcpAck) && !self.is_tcp_ack {
            (self.is_tcp_ack, self.tcp_ack_ns) = (true, sample.time_ns);
        } else if self.timing.is_none() {
            (self.timing, self.is_retransmitted) = (sample.timing, sample.is_retransmitted);
            (self.kind, self.time_ns) = (sample.kind, sample.time_ns);
        } else {
            return true;
        }
        false
    }

    /// The times that the message completes, TCP's first.
    #[inline]
    pub fn samples(&self) -> [Sample; 2] {
        let tcp_ack = Sample { timing: self.is_tcp_ack.then_some(Timing::TcpAck), time_ns: self.tcp_ack_ns, ..Sample::default() };
        let Self { timing, kind, time_ns, is_retransmitted, .. } = *self;
        [tcp_ack, Sample { timing, kind, time_ns, is_retransmitted }]
    }
}

/// Yes and no of a message, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Is(u8);

impl Is {
    /// It brings data for the first time.
    pub const DATA: u8 = 1;
    /// Its sender sent it before.
    pub const RETRANSMISSION: u8 = 1 << 1;
    /// It breaks its format.
    pub const MALFORMED: u8 = 1 << 2;
    /// See [`crate::message::Facts::is_handshake`].
    pub const HANDSHAKE: u8 = 1 << 3;
    /// See [`crate::message::Facts::is_of_flight`].
    pub const OF_FLIGHT: u8 = 1 << 4;
    /// See [`crate::message::Facts::is_opening`].
    pub const OPENING: u8 = 1 << 5;
    /// See [`crate::message::Facts::is_encrypted`].
    pub const ENCRYPTED: u8 = 1 << 6;

    #[inline]
    fn of(message: &Message, placement: &Placement) -> Self {
        let facts = &message.facts;
        let is = |condition: bool, bit: u8| if condition { bit } else { 0 };
        Self(
            is(placement.is_data, Self::DATA)
                | is(placement.is_retransmission, Self::RETRANSMISSION)
                | is(message.row.malformed.get().is_some(), Self::MALFORMED)
                | is(facts.is_handshake, Self::HANDSHAKE)
                | is(facts.is_of_flight, Self::OF_FLIGHT)
                | is(facts.is_opening, Self::OPENING)
                | is(facts.is_encrypted, Self::ENCRYPTED),
        )
    }

    /// Whether the bit is set.
    #[inline]
    #[must_use]
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl Count {
    /// What counts of a message, with what it completes.
    #[inline]
    #[must_use]
    pub fn new(message: &Message, kind: KindId, placement: &Placement, told: Told) -> Self {
        let row = &message.row;
        let hides = message.facts.is_encrypted && !message.facts.is_handshake;
        Self {
            kind,
            acknowledgement: placement.acknowledgement,
            is: Is::of(message, placement),
            sent_bytes: row.uncompressed_bytes.unwrap_or(row.payload_bytes),
            inside_bytes: row.plaintext_bytes.filter(|_| hides).unwrap_or(0),
            parts: message.parts(),
            frame: row.frame,
            time_ns: row.time_ns,
            exchange: exchange_of(placement),
            told,
        }
    }
}

/// The number of a message's exchange, as in [`Count::exchange`].
#[inline]
fn exchange_of(placement: &Placement) -> u64 {
    placement.exchange.map_or(0, |exchange| exchange.number + 1)
}

impl FieldSection {
    /// The header fields of a message, where it has any.
    #[inline]
    #[must_use]
    pub fn of(message: &Message, placement: &Placement) -> Option<Self> {
        let section_bytes = message.row.field_section_bytes?;
        Some(Self { exchange: exchange_of(placement), section_bytes, block_bytes: message.row.option_bytes })
    }
}

/// Words that a message tells about its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Protocol version.
    pub version: Option<&'static str>,
    /// A protection besides (D)TLS.
    pub protection: Option<&'static str>,
    /// A proof of identity.
    pub authentication: Option<&'static str>,
    /// See the table `sessions`.
    pub client_identifier: Option<String>,
    /// See the table `sessions`.
    pub connection_id: Option<String>,
    /// See the table `sessions`.
    pub server_name: Option<String>,
    /// See the table `sessions`.
    pub cipher_suite: Option<String>,
    /// See the table `sessions`.
    pub alpn: Option<String>,
}

impl Words {
    /// What a message tells, where that is more than the version that was told before.
    #[inline]
    #[must_use]
    pub fn of(message: &Message, told: &mut Option<&'static str>) -> Option<Self> {
        let (row, facts) = (&message.row, &message.facts);
        let is_told = facts.version.is_none_or(|version| told.is_some_and(|told| is_same_word(version, told)));
        let texts = [&row.client_identifier, &row.connection_id, &row.server_name, &row.cipher_suite, &row.alpn];
        if is_told && facts.protection.is_none() && facts.authentication.is_none() && texts.iter().all(|text| text.get().is_none()) {
            return None;
        }
        *told = facts.version.or(*told);
        let [client_identifier, connection_id, server_name, cipher_suite, alpn] = texts.map(|text| text.get().map(str::to_owned));
        Some(Self {
            version: facts.version,
            protection: facts.protection,
            authentication: facts.authentication,
            client_identifier,
            connection_id,
            server_name,
            cipher_suite,
            alpn,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(session: u32, timing: Timing, time_ns: i64) -> Event {
        Event::Sample { session, sample: Sample { timing: Some(timing), time_ns, ..Sample::default() } }
    }

    #[test]
    fn a_message_takes_along_a_time_of_tcp_one_of_its_exchange_and_the_exchanges_end() {
        let mut told = Told::default();
        let ended = Event::Ended { session: 1, outcome: Outcome::Complete };
        let events = [measured(1, Timing::TcpAck, 5), measured(1, Timing::AckAndRtt, 7), ended];

        assert_eq!([None; 3], events.map(|event| told.take(event, 1)));
        assert_eq!([Some(Timing::TcpAck), Some(Timing::AckAndRtt)], told.samples().map(|sample| sample.timing));
        assert_eq!(([5, 7], Some(Outcome::Complete)), (told.samples().map(|sample| sample.time_ns), told.ended));
    }

    #[test]
    fn what_is_of_others_or_has_no_room_is_given_back() {
        let mut told = Told::default();
        told.take(measured(1, Timing::Interval, 3), 1);
        let events = [measured(2, Timing::Rtt, 4), measured(1, Timing::Rtt, 4), Event::Undelivered { session: 1, publications: 2 }];

        assert_eq!(events.map(Some), events.map(|event| told.take(event, 1)));
        assert_eq!([None, Some(Timing::Interval)], told.samples().map(|sample| sample.timing));
    }
}
