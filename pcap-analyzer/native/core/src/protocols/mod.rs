//! The contract of a protocol, the table `PROTOCOLS`, and the choice for a stream.

mod choice;
mod coap;
mod coap_tcp;
mod dtls;
mod framed;
pub mod framing;
mod http1;
mod http2;
mod mqtt;
mod mqtt_sn;
mod quic;
mod tls;
mod websocket;
mod xmpp;

pub use choice::{choose, choose_inside, choose_within, expected, is_server_port, DecodeAs, FoundBy};
pub use coap::show_inner;
pub use framed::{Framing, FRAMED};
pub use tls::show_hidden;

use crate::exchanges::{Exchanges, Moment, Placement};
use crate::message::{Message, Side};

/// What a decoder is given: the captured bytes from the start of a message on, and how many bytes there are on the wire from there on.
///
/// `wire_bytes` is more than `bytes.len()` where the snap length, a gap or the bound on kept bytes took the rest away.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The bytes at hand.
    pub bytes: &'a [u8],
    /// Bytes on the wire from the same start: of the datagram to its end, of the stream as far as it has come.
    pub wire_bytes: usize,
}

impl<'a> Input<'a> {
    /// Bytes that are all at hand.
    #[must_use]
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, wire_bytes: bytes.len() }
    }
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Offset of the offending field in the input.
    pub offset: usize,
    /// The field, by the standard's name, and what is wrong with it.
    pub field: &'static str,
    /// The section that it breaks: "RFC 7252 §3".
    pub section: &'static str,
}

/// A decoder's answer. It never raises, logs or waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A message of `len` bytes: 0 < len ≤ `wire_bytes`. Its security, header, option, payload and opaque bytes add up to `len`.
    /// `len` may pass `bytes.len()`: what is not at hand is then counted where the message's length fields put it (payload), else as opaque.
    Message {
        /// Its length on the wire.
        len: usize,
    },
    /// More is needed than `wire_bytes`, or than `bytes` to know more: `at_least` bytes from the input's start, and `at_least > bytes.len()`.
    NeedMore {
        /// How many bytes from the start.
        at_least: usize,
    },
    /// `len` bytes (0 < len ≤ `wire_bytes`) are no message. All of them are counted as opaque; the columns decoded before the fault may stay.
    Malformed {
        /// How many bytes are given up.
        len: usize,
        /// What is wrong.
        why: Malformed,
    },
}

/// Turns bytes into messages. One decoder serves both directions of a conversation, since what one side agreed binds the other.
pub trait Decoder: Send {
    /// Decodes the message at the start of `input`, sent by `from`, into `message` (cleared by the caller).
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step;

    /// Reads a little of what the next message from this side will need, see [`crate::pipeline`]: so it is fetched while others are waited for.
    fn touch(&self, from: Side) -> u64 {
        let _ = from;
        0
    }

    /// Whether it needs all bytes of a message that is not complete yet, since no length in its start tells where it ends, or since it carries others.
    fn wants_whole(&self) -> bool {
        false
    }

    /// Whether a datagram is none of its own, but of another protocol that shares the ports with it.
    fn is_of_other(&self, datagram: &[u8]) -> bool {
        let _ = datagram;
        false
    }

    /// Bytes of this side's direction are missing, and no message is known to hold them all: what it agreed or began in them is not known.
    fn gap(&mut self, from: Side) {
        let _ = from;
    }

    /// What decodes the connection behind a message that changes its protocol ([`Message::carries_on`]), where what was agreed in this one counts there.
    fn successor(&mut self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// Whether a message may begin with these bytes, the start of a segment that the snap length has cut: as a rule since it would fill the segment. So a
    /// boundary is found again where too little was captured for [`Decoder::is_boundary`].
    fn is_cut_start(&self, input: Input<'_>, from: Side) -> bool {
        let _ = (input, from);
        false
    }

    /// Whether `bytes`, somewhere in a stream, can be the start of a message: used to find a boundary again behind a gap. None where so few bytes are at
    /// hand that those behind them have to tell.
    fn is_boundary(&self, bytes: &[u8], from: Side) -> Option<bool> {
        let _ = (bytes, from);
        Some(false)
    }
}

/// Finds which messages belong together, for one conversation.
pub trait Pairing: Send {
    /// Places a message: opens, continues or ends exchanges, and says what the message is in them.
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement;

    /// As [`Decoder::touch`].
    fn touch(&self, from: Side) -> u64 {
        let _ = from;
        0
    }

    /// The same of what it points to, a step later.
    fn touch_lists(&self) -> u64 {
        0
    }

    /// What places messages behind one that changes the connection's protocol, where an exchange goes on there.
    fn successor(&mut self) -> Option<Box<dyn Pairing>> {
        None
    }

    /// The conversation (or the capture) ends: what is still open is closed as "open" or "unanswered".
    fn end(&mut self, exchanges: &mut Exchanges);
}

/// What the user tells of agreements that the capture may not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Decoding {
    /// MQTT protocol version (3, 4 or 5) of connections whose CONNECT is not in the capture.
    pub mqtt_version: Option<u8>,
    /// How messages are framed in TCP streams of no protocol that is known.
    pub framing: Framing,
}

/// How sure a probe is (retina's vocabulary).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likely {
    /// These bytes cannot be this protocol.
    No,
    /// They could be; a port has to speak for it.
    Maybe,
    /// Few others could send them.
    Yes,
}

/// A port on which a protocol is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// UDP port.
    Udp(u16),
    /// TCP port.
    Tcp(u16),
    /// TCP port, inside TLS.
    Tls(u16),
    /// UDP port, inside DTLS.
    Dtls(u16),
}

/// How a protocol's messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// In datagrams: a message ends with its datagram at the latest.
    Datagram,
    /// In a byte stream.
    Stream,
}

/// Finds where a connection ID begins in a datagram.
pub type FindConnectionId = fn(&[u8]) -> Option<&[u8]>;

/// One protocol.
pub struct Protocol {
    /// Wireshark's filter name: "coap".
    pub name: &'static str,
    /// What `-d` accepts besides `name`, and what tells rows of the same `name` apart ("coap_tcp").
    pub decode_as: &'static str,
    /// Standards it follows: "RFC 7252".
    pub standards: &'static [&'static str],
    /// Datagrams or a stream.
    pub carrier: Carrier,
    /// Whether it protects others, whose messages are inside its own.
    pub is_security: bool,
    /// The row of what its records carry, where that is always the same.
    pub carries: Option<&'static str>,
    /// Ports where it is expected.
    pub ports: &'static [Port],
    /// Looks at the first bytes of a stream's direction, or at a datagram.
    pub probe: fn(&[u8]) -> Likely,
    /// What stands where a connection ID does, in a datagram that may begin with one: by it a peer is known whose address has changed.
    pub connection_id: Option<FindConnectionId>,
    /// Makes a decoder for a conversation.
    pub decoder: fn(&Decoding) -> Box<dyn Decoder>,
    /// Makes a pairing for a conversation.
    pub pairing: fn() -> Box<dyn Pairing>,
    /// Wireshark's field names with the column each fills: ("coap.mid", "message_id").
    pub wireshark: &'static [(&'static str, &'static str)],
}

/// A protocol by its `decode_as`.
#[must_use]
pub fn by_row(decode_as: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().copied().find(|row| row.decode_as == decode_as)
}

/// All protocols. Order decides between probes that are equally sure.
pub const PROTOCOLS: &[&Protocol] = &[
    &coap::COAP,
    &coap_tcp::COAP_TCP,
    &coap_tcp::COAP_WS,
    &mqtt::MQTT,
    &mqtt_sn::MQTT_SN,
    &tls::TLS,
    &dtls::DTLS,
    &websocket::WEBSOCKET,
    &http1::HTTP1,
    &http2::HTTP2,
    &quic::QUIC,
    &quic::frames::QUIC_FRAMES,
    &xmpp::XMPP,
    &framed::FRAMED,
];
