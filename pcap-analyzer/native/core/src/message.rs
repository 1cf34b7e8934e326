//! A message on its way through the rooms: the columns of its row, and what the rooms tell each other about it.

use crate::schema::messages::Row;
use std::ops::{Deref, DerefMut, Range};

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that opened the connection, or sends requests to a known port.
    Client,
    /// The other side.
    Server,
}

impl Side {
    /// The other side.
    #[inline]
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The direction's name when this side sends.
    #[inline]
    #[must_use]
    pub const fn direction(self) -> &'static str {
        match self {
            Self::Client => "c2s",
            Self::Server => "s2c",
        }
    }

    /// 0 for the client, 1 for the server: for arrays with a place a side.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// A CoAP token (RFC 7252 §5.3.1), 0 to 8 bytes: as a number, which is compared and passed on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Token {
    number: u64,
    length: u8,
}

impl Token {
    /// Bytes of a token, at most.
    const MOST: usize = 8;

    /// A token of these bytes, of which only the first eight are kept.
    #[inline]
    #[must_use]
    pub fn new(token: &[u8]) -> Self {
        let kept = token.get(..Self::MOST).unwrap_or(token);
        let number = kept.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Self { number, length: u8::try_from(kept.len()).unwrap_or(8) }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(self) -> usize {
        self.length.into()
    }

    /// Whether it is the empty token.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The token's bytes.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        self.number.to_be_bytes().into_iter().skip(Self::MOST - self.len()).collect()
    }
}

/// What a message tells about its session, besides its columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Protocol version in words: "MQTT 5", "TLS 1.3".
    pub version: Option<&'static str>,
    /// A proof of identity that this message shows: "certificate", "client certificate", "PSK", "resumption", "user name".
    pub authentication: Option<&'static str>,
    /// A protection that this message shows besides (D)TLS: "OSCORE".
    pub protection: Option<&'static str>,
    /// Whether it is a message of a security handshake.
    pub is_handshake: bool,
    /// Whether it counts for the handshake's flights: a handshake message that was not sent before, no ChangeCipherSpec and no alert.
    pub is_of_flight: bool,
    /// Whether it can be the application's opening message (Time1): a CoAP request, CONNECT.
    pub is_opening: bool,
    /// Whether its content is encrypted.
    pub is_encrypted: bool,
    /// Whether it begins another connection between the same ports: what was carried before is over.
    pub begins_anew: bool,
    /// Whether it carries bytes of a stream ahead of those that tell what they are.
    pub is_ahead: bool,
    /// Whether its protocol version had to be inferred.
    pub is_version_inferred: bool,
    /// Whether its payload is compressed, so that what the application sent was larger.
    pub is_compressed: bool,
    /// Whether its sender ends the stream with it (HTTP/2's END_STREAM, QUIC's FIN).
    pub is_end_of_stream: bool,
    /// Whether its topic alias is not known.
    pub is_alias_unknown: bool,
    /// Whether its sender asks for messages with RETAIN as their publisher set it (MQTT 5 §3.8.3.1).
    pub is_retain_as_published: bool,
}

/// The nine parts of a message's bytes on the wire, in the order of the columns: link, padding, ip, transport, security, header, option, payload, opaque.
pub type Parts = [u32; 9];

/// A message: its row's columns (by `Deref`) and what is not a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    /// The columns.
    pub row: Row,
    /// Asked for by the caller: whether decoders fill the columns of text that only the tables `messages` and `exchanges` show. Those that sessions show
    /// (`client_identifier`, `cipher_suite`, `server_name`, `alpn`, `connection_id`) are filled always.
    pub wants_text: bool,
    /// Asked for by the caller: whether user names may be shown.
    pub wants_secrets: bool,
    /// What it tells about its session.
    pub facts: Facts,
    /// The kind's number in its protocol: MQTT control packet type.
    pub number: u8,
    /// The (last) reason or return code of an acknowledgement.
    pub result: Option<u8>,
    /// CoAP token.
    pub token: Token,
    /// Hash of what it is about (CoAP Uri-Path and Uri-Query with the other options that name a resource, MQTT topic with an alias resolved); 0 where unknown.
    pub subject_hash: u64,
    /// Hash of the payload's captured bytes and its length; set by decoders of messages that another session may carry on (MQTT PUBLISH).
    pub payload_digest: u64,
    /// Hash of ETag or Request-Tag options (RFC 7252 §5.10.6, RFC 9175 §3): keeps concurrent block-wise bodies apart; 0 where none. Of HTTP/1 the number
    /// of the request that it is or answers; 0 where that is not known. Of HTTP/2 the stream that is promised, or a hash of PING's data.
    pub body_tag: u64,
    /// Hash of what tells the endpoints apart that a forwarder speaks for (MQTT-SN 1.2 §5.5: the wireless node's ID); 0 where none does.
    pub node_hash: u64,
    /// The row (`decode_as`) of the protocol whose bytes it carries; none where it carries none that are decoded.
    pub carries: Option<&'static str>,
    /// The row of the protocol that the connection goes on in behind this message: STARTTLS, Upgrade.
    pub carries_on: Option<&'static str>,
    /// The protocol's name where it is another's than the conversation's: HTTP for WebSocket's handshake.
    pub other_protocol: Option<&'static str>,
    /// The bytes that it carries.
    pub content: Vec<u8>,
    /// Of a record: its protected bytes, without its header; 0 for all else.
    pub fragment_bytes: u32,
    /// Where the captured payload stands in the decoder's input.
    pub payload_range: Range<usize>,
}

impl Message {
    /// Makes it empty for the next message; what was asked for stays.
    #[inline]
    pub fn clear(&mut self) {
        self.row.clear();
        self.facts = Facts::default();
        (self.number, self.result) = (0, None);
        self.token = Token::default();
        self.subject_hash = 0;
        self.payload_digest = 0;
        self.body_tag = 0;
        self.node_hash = 0;
        self.fragment_bytes = 0;
        (self.carries, self.carries_on, self.other_protocol) = (None, None, None);
        self.content.clear();
        self.payload_range = 0..0;
    }

    /// Its bytes on the wire by part.
    #[inline]
    #[must_use]
    pub const fn parts(&self) -> Parts {
        let row = &self.row;
        [
            row.link_bytes,
            row.padding_bytes,
            row.ip_bytes,
            row.transport_bytes,
            row.security_bytes,
            row.header_bytes,
            row.option_bytes,
            row.payload_bytes,
            row.opaque_bytes,
        ]
    }
}

impl Deref for Message {
    type Target = Row;
    #[inline]
    fn deref(&self) -> &Row {
        &self.row
    }
}

impl DerefMut for Message {
    #[inline]
    fn deref_mut(&mut self) -> &mut Row {
        &mut self.row
    }
}

/// Whether two words of our tables are the same: as a rule they are even one and the same text, which is quicker to see.
#[inline]
#[must_use]
pub fn is_same_word(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || one == other
}
