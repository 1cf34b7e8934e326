//! TLS 1.0 to 1.3 at record and handshake level, without keys; SSL 3.0 likewise, of SSL 2.0 the ClientHello (RFC 5246 Appendix E.2).
//!
//! Standards: RFC 2246, RFC 4346, RFC 5246, RFC 8446; RFC 6101 (SSL 3.0); extensions as listed in `handshake.rs`.
//!
//! One message is one record. Bytes: handshake, alert, ChangeCipherSpec and heartbeat records are security as a whole, since they exist for its sake.
//! Of application data the record header and what the cipher suite adds is security, the content is opaque; where the cipher suite is not known
//! (capture begun in mid-connection, early data) only the header is security.
//!
//! Records that hide their handshake messages have the variant "encrypted". Up to TLS 1.2 those are the handshake records behind ChangeCipherSpec. In
//! TLS 1.3 handshake messages look like application data, and these are taken for the handshake: the server's records from its ServerHello on until
//! the client has answered, and the client's records as long as they have sizes of its last flight (`flight.rs`), at most until the server speaks
//! again. A server's data ahead of the client's Finished, and early data behind the ServerHello, are so counted as handshake; NewSessionTicket and
//! KeyUpdate cannot be told from data and count as such.

mod flight;
mod handshake;
mod names;
mod pairing;
mod reassembly;
mod records;
#[cfg(test)]
pub(in crate::protocols) mod testing;
#[cfg(test)]
mod tests;

pub(in crate::protocols) use handshake::Association;
pub(in crate::protocols) use names::{
    content_type, handshake_type, ACK, ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, CLIENT_HELLO, ENCRYPTED, HANDSHAKE, TLS12_CID,
};
pub(in crate::protocols) use pairing::HandshakePairing;
pub use records::show_hidden;
pub(in crate::protocols) use records::{carries_handshake_on, is_all_security, protect, protect_handshake, show_alert};

use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::message::{Message, Side};
use crate::security::Version;
use reassembly::{Part, Reassembly};

/// TLS.
pub const TLS: Protocol = Protocol {
    name: "tls",
    decode_as: "tls",
    standards: &["RFC 2246", "RFC 4346", "RFC 5246", "RFC 8446"],
    carrier: Carrier::Stream,
    is_security: true,
    carries: None,
    ports: PORTS,
    probe,
    connection_id: None,
    decoder: |_| Box::new(TlsDecoder::new()),
    pairing: || Box::new(HandshakePairing::default()),
    wireshark: &[
        ("tls.record.content_type", "content_type"),
        ("tls.record.version", "version"),
        ("tls.handshake.extensions_server_name", "server_name"),
        ("tls.handshake.extensions_alpn_str", "alpn"),
    ],
};

/// MQTT and CoAP over TLS, the web, and others whose port IANA reserves for TLS (RFC 8314, RFC 7858, RFC 5425, AMQP, LDAP, XMPP, TURN, FTP).
const PORTS: &[Port] = &[
    Port::Tcp(8883),
    Port::Tcp(5684),
    Port::Tcp(443),
    Port::Tcp(8443),
    Port::Tcp(4433),
    Port::Tcp(465),
    Port::Tcp(636),
    Port::Tcp(853),
    Port::Tcp(989),
    Port::Tcp(990),
    Port::Tcp(992),
    Port::Tcp(993),
    Port::Tcp(995),
    Port::Tcp(5061),
    Port::Tcp(5223),
    Port::Tcp(5349),
    Port::Tcp(5671),
    Port::Tcp(6514),
];

/// Bytes of a record's header (RFC 8446 §5.1).
const HEADER: usize = 5;

/// Most bytes of a fragment: 2^14 of content, 1,024 of compression, 1,024 of protection (RFC 5246 §6.2.3).
const MOST: u16 = (1 << 14) + 2048;

/// A record's header.
#[derive(Debug, Clone, Copy)]
struct Header {
    content_type: u8,
    version: u16,
    length: u16,
}

impl Header {
    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        let [content_type, v1, v2, l1, l2, ..] = *bytes else { return None };
        Some(Self { content_type, version: u16::from_be_bytes([v1, v2]), length: u16::from_be_bytes([l1, l2]) })
    }

    /// What is wrong with it, if anything (RFC 8446 §5.1).
    #[inline]
    const fn fault(&self) -> Option<Malformed> {
        let (offset, field) = match *self {
            Self { content_type, .. } if content_type < names::CHANGE_CIPHER_SPEC || content_type > names::HEARTBEAT => (0, "type"),
            Self { version, .. } if version < 0x0300 || version > 0x0304 => (1, "legacy_record_version"),
            Self { length, .. } if length > MOST => (3, "length"),
            _ => return None,
        };
        Some(Malformed { offset, field, section: "RFC 8446 §5.1" })
    }

    const fn len(&self) -> usize {
        HEADER + self.length as usize
    }
}

/// A hello at the start of a record is enough; other records could be anything's.
fn probe(bytes: &[u8]) -> Likely {
    let Some(header) = Header::read(bytes) else { return if is_begun(bytes) { Likely::Maybe } else { Likely::No } };
    if header.fault().is_some() || header.length == 0 {
        return if sslv2_client_hello(bytes).is_some() { Likely::Yes } else { Likely::No };
    }
    match (header.content_type, bytes.get(HEADER)) {
        (HANDSHAKE, Some(&(names::CLIENT_HELLO | names::SERVER_HELLO))) => Likely::Yes,
        _ => Likely::Maybe,
    }
}

/// Whether a segment ends within the header of a record that holds a handshake message.
fn is_begun(bytes: &[u8]) -> bool {
    matches!(bytes, [HANDSHAKE] | [HANDSHAKE, 3, ..])
}

/// The version of records in the format of SSL 2.0.
const SSL_2_0: u16 = 0x0002;

/// The length of a ClientHello in the format of SSL 2.0 (RFC 5246 Appendix E.2).
fn sslv2_client_hello(bytes: &[u8]) -> Option<usize> {
    let [l1, l2, names::CLIENT_HELLO, v1, v2, c1, c2, s1, s2, n1, n2, ..] = *bytes else { return None };
    let number = |high, low| usize::from(u16::from_be_bytes([high, low]));
    let (length, suites, session_id, challenge) = (number(l1 & 0x7f, l2), number(c1, c2), number(s1, s2), number(n1, n2));
    let is_version = matches!((v1, v2), (3, 0..=4) | (0, 2));
    let adds_up = length == 9 + suites + session_id + challenge && suites.is_multiple_of(3) && (16..=32).contains(&challenge);
    (l1 & 0x80 != 0 && is_version && adds_up).then_some(2 + length)
}

/// Which side's records of TLS 1.3 are still taken for the handshake (see the module's head).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// The server's, and the client's first.
    ServerFlight,
    /// The client's, until its flight ends or the server's next record.
    ClientFlight,
    /// None.
    Over,
}

struct TlsDecoder {
    association: Association,
    reassembly: [Reassembly; 2],
    hidden: Hidden,
    /// Whether the client has sent data ahead of the ServerHello.
    has_early_data: bool,
    is_started: bool,
}

impl Decoder for TlsDecoder {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let Some(header) = Header::read(input.bytes) else { return Step::NeedMore { at_least: HEADER } };
        if let Some(why) = header.fault() {
            return self.other(input, message, why);
        }
        let len = header.len();
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        self.is_started = true;
        message.content_type = Some(header.content_type);
        message.version = Some(header.version);
        let fragment = input.bytes.get(HEADER..len.min(input.bytes.len())).unwrap_or(&[]);
        self.record(&header, fragment, from, message);
        Step::Message { len }
    }

    fn is_boundary(&self, bytes: &[u8], _from: Side) -> Option<bool> {
        match Header::read(bytes) {
            Some(header) => Some(is_record(bytes) && bytes.get(header.len()..).is_none_or(could_be_record)),
            None if could_be_record(bytes) => None,
            None => Some(false),
        }
    }
}

/// Whether a record can begin with these bytes, whose header is at hand.
fn is_record(bytes: &[u8]) -> bool {
    Header::read(bytes).is_some_and(|header| header.fault().is_none() && header.length > 0)
}

/// Whether a record can begin with these bytes, as far as they go.
fn could_be_record(bytes: &[u8]) -> bool {
    let mut padded = [names::APPLICATION_DATA, 3, 3, 0, 1];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    Header::read(&padded).is_some_and(|header| header.fault().is_none())
}

impl TlsDecoder {
    fn new() -> Self {
        Self {
            association: Association::new(false),
            reassembly: [Reassembly::default(), Reassembly::default()],
            hidden: Hidden::Over,
            has_early_data: false,
            is_started: false,
        }
    }

    /// No record of TLS: SSL 2.0's ClientHello at the start, or bytes until the next record (STARTTLS talks in the clear first).
    fn other(&mut self, input: Input<'_>, message: &mut Message, why: Malformed) -> Step {
        let hello = sslv2_client_hello(input.bytes).filter(|_| !self.is_started);
        let Some(len) = hello else { return self.give_up(input, why) };
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        self.is_started = true;
        (message.kind, message.variant, message.version) = ("Handshake", "Client Hello", Some(SSL_2_0));
        if message.wants_text {
            message.handshake_types.set("Client Hello");
        }
        carries_handshake_on(message);
        is_all_security(message, len);
        Step::Message { len }
    }

    /// No record: all up to the next one.
    fn give_up(&self, input: Input<'_>, why: Malformed) -> Step {
        let is_start = |at: &usize| input.bytes.get(*at..).is_some_and(|rest| self.is_boundary(rest, Side::Client) == Some(true));
        let len = (1..input.bytes.len()).find(is_start).unwrap_or(input.wire_bytes);
        Step::Malformed { len, why }
    }

    #[inline]
    fn record(&mut self, header: &Header, fragment: &[u8], from: Side, message: &mut Message) {
        if header.content_type == APPLICATION_DATA {
            return self.application_data(header, from, message);
        }
        message.kind = content_type(header.content_type).unwrap_or_default();
        is_all_security(message, header.len());
        match header.content_type {
            HANDSHAKE => self.handshake(header, fragment, from, message),
            CHANGE_CIPHER_SPEC => {
                message.facts.is_handshake = true;
                self.association.change_cipher_spec(from, message);
            }
            ALERT if header.length == 2 => show_alert(message, fragment),
            _ => {
                protect(&self.association, message, HEADER, header.length.into());
                is_all_security(message, header.len());
                message.opaque_bytes = 0;
                message.variant = ENCRYPTED;
            }
        }
    }

    #[inline]
    fn application_data(&mut self, header: &Header, from: Side, message: &mut Message) {
        message.kind = "Application Data";
        let length = usize::from(header.length);
        if self.hidden != Hidden::Over && self.is_hidden_handshake(length, from) {
            return protect_handshake(&self.association, message, HEADER, length);
        }
        protect(&self.association, message, HEADER, length);
        self.has_early_data |= from == Side::Client && self.association.agreement.is_none();
        if !self.association.has_begun() {
            message.facts.version = Version::from_number(header.version).filter(|version| version.is_told_by_records()).map(Version::name);
        }
    }

    /// Whether a record of TLS 1.3 is taken for the handshake.
    fn is_hidden_handshake(&mut self, length: usize, from: Side) -> bool {
        match (self.hidden, from) {
            (Hidden::ServerFlight, Side::Server) => true,
            (Hidden::ServerFlight | Hidden::ClientFlight, Side::Client) => {
                let part = self.part_of_clients_flight(length);
                self.hidden = if part == Some(flight::Part::Inner) { Hidden::ClientFlight } else { Hidden::Over };
                part.is_some()
            }
            _ => {
                self.hidden = Hidden::Over;
                false
            }
        }
    }

    /// What a record of the client may be of its last flight; anything where its content's size is not known, and in early data's company.
    fn part_of_clients_flight(&self, length: usize) -> Option<flight::Part> {
        let agreement = self.association.agreement?;
        let (Some(content), Some(finished)) = (agreement.content_bytes(length), agreement.finished_bytes()) else {
            return Some(flight::Part::Inner);
        };
        let part = if self.hidden == Hidden::ServerFlight { flight::first(content, finished) } else { flight::later(content, finished) };
        part.or(self.has_early_data.then_some(flight::Part::Inner))
    }

    fn handshake(&mut self, header: &Header, fragment: &[u8], from: Side, message: &mut Message) {
        let length = usize::from(header.length);
        let Some(reassembly) = self.reassembly.get_mut(from.index()) else { return };
        let is_known = match fragment {
            [kind, 0..=1, ..] => names::handshake_type(*kind).is_some(),
            [kind, ..] => self.association.has_begun() && names::handshake_type(*kind).is_some(),
            [] => false,
        };
        if self.association.has_changed(from) || !(reassembly.is_pending() || is_known) {
            reassembly.clear();
            return protect_handshake(&self.association, message, HEADER, length);
        }
        carries_handshake_on(message);
        let association = &mut self.association;
        reassembly.cut(fragment, length, |part| see(association, part, from, message));
        if message.variant == "Server Hello" && self.association.is_13() {
            self.hidden = Hidden::ServerFlight;
        }
    }
}

/// Shows what a record holds of a handshake message. False where its type is none: the rest is encrypted.
fn see(association: &mut Association, part: Part<'_>, from: Side, message: &mut Message) -> bool {
    let (name, is_new) = match part {
        Part::Ends { kind, body, is_continued } => (association.read(kind, body, from, message), !is_continued),
        Part::Begins(kind) => (names::handshake_type(kind).unwrap_or_default(), true),
        Part::Goes(kind) => (names::handshake_type(kind).unwrap_or_default(), false),
    };
    if message.variant.is_empty() {
        message.variant = name;
    }
    if is_new && message.wants_text && !name.is_empty() {
        message.handshake_types.more(",").push_str(name);
    }
    !name.is_empty()
}
