//! What is put down in the books of sessions.

use super::bytes::PartSums;
use super::kinds::KindId;
use crate::exchanges::{Acknowledgement, Placement};
use crate::message::{is_same_word, Message, Parts};
use crate::packet::Endpoint;
use std::sync::Arc;

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
    /// Number among all packets of the one that showed its protocol: sessions are numbered in this order.
    pub order: u64,
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
    /// The link layer sends it again.
    LinkRetransmission,
}

/// Frames without a message that came before the session.
#[derive(Debug, Default)]
pub struct Before {
    /// Their bytes.
    pub parts: PartSums,
    /// Payload among these, copies aside: what was not recognised.
    pub unparsed_bytes: u64,
    /// How many they are.
    pub frames: u64,
    /// How many of them TCP sent again.
    pub retransmissions: u64,
    /// How many of them the capture took twice.
    pub captured_twice: u64,
    /// How many of them the link layer sent again.
    pub link_retransmissions: u64,
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
    /// What counts of a message.
    #[inline]
    #[must_use]
    pub fn new(message: &Message, kind: KindId, placement: &Placement) -> Self {
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
        }
    }
}

/// An exchange's number as in [`Count::exchange`], which has 0 for none.
#[inline]
pub(super) const fn counted(number: u64) -> u64 {
    number + 1
}

/// The number of a message's exchange, as in [`Count::exchange`].
#[inline]
fn exchange_of(placement: &Placement) -> u64 {
    placement.exchange.map_or(0, |exchange| counted(exchange.number))
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
