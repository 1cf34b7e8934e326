//! QUIC versions 1 and 2 (RFC 9000, RFC 9001, RFC 9369): packets, without keys.
//!
//! One message is one packet. Byte columns: its header up to the packet number is header, the tag of 16 bytes (RFC 9001 §5.3) is security, all between is
//! opaque, the packet number among it, whose length is protected. What packets of the application hold, once opened, is of the row `quic_frames`.
//!
//! A client whose address changes is known by its packets' connection ID (RFC 9000 §9), unless it takes a new one that only opened packets tell.

pub(super) mod frames;
mod stream;

use super::{Carrier, Decoder, Input, Likely, Malformed, Pairing, Port, Protocol, Step};
use crate::bytes::{Cursor, Short};
use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};

/// QUIC.
pub const QUIC: Protocol = Protocol {
    name: "quic",
    decode_as: "quic",
    standards: &["RFC 9000", "RFC 9001", "RFC 9369", "RFC 8999"],
    carrier: Carrier::Datagram,
    is_security: true,
    carries: Some("quic_frames"),
    ports: &[Port::Udp(443), Port::Udp(4433)],
    probe,
    connection_id: Some(connection_id),
    decoder: |_| Box::<Quic>::default(),
    pairing: || Box::<Handshakes>::default(),
    wireshark: &[("quic.long.packet_type", "kind")],
};

/// RFC 9000 §15, RFC 9369 §3.1
const VERSIONS: [(u32, &str); 2] = [(1, "QUIC v1"), (V2, "QUIC v2")];
const V2: u32 = 0x6b33_43cf;
/// Bytes of the tag of every cipher suite (RFC 9001 §5.3).
const TAG: usize = 16;
/// Longest connection ID (RFC 9000 §17.2).
const MOST_ID: u8 = 20;

/// A variable-length integer (RFC 9000 §16).
pub(super) fn varint(cursor: &mut Cursor<'_>) -> Result<u64, Short> {
    let first = cursor.u8()?;
    let mut value = u64::from(first & 0x3f);
    for byte in cursor.take((1 << (first >> 6)) - 1)? {
        value = value << 8 | u64::from(*byte);
    }
    Ok(value)
}

/// The receiver's connection ID stands behind the first byte of a short header, and behind version and length in a long one (RFC 8999 §5).
fn connection_id(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(if bytes.first()? & 0x80 == 0 { 1 } else { 6 }..)
}

/// A packet's header as far as it is not protected.
#[derive(Debug, Clone, Copy, Default)]
struct Header<'a> {
    kind: &'static str,
    version: Option<u32>,
    /// Bytes up to the packet number.
    bytes: usize,
    /// Bytes of the whole packet; none where it goes to the datagram's end.
    packet_bytes: Option<usize>,
    /// The sender's own connection ID, where the header tells it.
    source_id: Option<&'a [u8]>,
    /// The receiver's, in a short header.
    destination_id: &'a [u8],
    is_protected: bool,
}

impl<'a> Header<'a> {
    /// `id_bytes`: length of the connection IDs that the receiver chose. Behind another packet, bytes without the fixed bit (RFC 9000 §17.3.1) fill the
    /// datagram up; at its start they are a packet whose sender has cleared it (RFC 9287).
    fn read(bytes: &'a [u8], id_bytes: usize, is_behind_another: bool) -> Result<Self, Short> {
        let mut cursor = Cursor::new(bytes);
        let first = cursor.u8()?;
        if first & 0xc0 == 0 && is_behind_another {
            let bytes = bytes.len();
            return Ok(Self { kind: "Padding", bytes, ..Self::default() });
        }
        if first & 0x80 == 0 {
            let destination_id = cursor.take(id_bytes)?;
            return Ok(Self { kind: "1-RTT", bytes: cursor.offset(), destination_id, is_protected: true, ..Self::default() });
        }
        let version = cursor.u32()?;
        let destination = cursor.u8()?;
        cursor.take(destination.into())?;
        let source_bytes = cursor.u8()?;
        let source_id = cursor.take(source_bytes.into())?;
        let kind = if version == 0 { "Version Negotiation" } else { long_kind(first, version) };
        let mut header = Self { kind, version: Some(version), bytes: bytes.len(), source_id: Some(source_id), ..Self::default() };
        if kind == "Version Negotiation" || kind == "Retry" {
            return Ok(header);
        }
        if kind == "Initial" {
            let token_bytes = varint(&mut cursor)?;
            cursor.take(usize::try_from(token_bytes).unwrap_or(usize::MAX))?;
        }
        let length = usize::try_from(varint(&mut cursor)?).unwrap_or(usize::MAX);
        header.bytes = cursor.offset();
        header.packet_bytes = Some(header.bytes.saturating_add(length));
        header.is_protected = true;
        Ok(header)
    }
}

/// RFC 9000 §17.2, RFC 9369 §3.2
fn long_kind(first: u8, version: u32) -> &'static str {
    let kinds = if version == V2 { ["Retry", "Initial", "0-RTT", "Handshake"] } else { ["Initial", "0-RTT", "Handshake", "Retry"] };
    kinds.get(usize::from(first >> 4 & 3)).copied().unwrap_or("Initial")
}

#[derive(Debug, Default)]
struct Quic {
    /// Lengths of the connection IDs that each side chose, which the other puts into its packets.
    id_bytes: [usize; 2],
    version: Option<u32>,
    /// What the last packet left of its datagram.
    rest: usize,
    /// The connection ID that the client chose for itself.
    client_id: Vec<u8>,
    /// The connection ID that each side put into its last packet of the application.
    told: [Vec<u8>; 2],
}

impl Decoder for Quic {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let id_bytes = self.id_bytes.get(from.peer().index()).copied().unwrap_or(0);
        let is_behind_another = std::mem::take(&mut self.rest) == input.wire_bytes;
        let header = match Header::read(input.bytes, id_bytes, is_behind_another) {
            Ok(header) => header,
            Err(short) if input.bytes.len() < input.wire_bytes => return Step::NeedMore { at_least: short.needed },
            Err(short) => {
                let why = Malformed { offset: short.offset, field: "header runs past its datagram", section: "RFC 9000 §17" };
                return Step::Malformed { len: input.wire_bytes, why };
            }
        };
        let len = header.packet_bytes.unwrap_or(input.wire_bytes);
        if len > input.wire_bytes || len < header.bytes {
            let why = Malformed { offset: header.bytes, field: "Length runs past its datagram", section: "RFC 9000 §17.2" };
            return Step::Malformed { len: input.wire_bytes, why };
        }
        self.rest = input.wire_bytes - len;
        message.facts.begins_anew = self.begins_anew(&header, from);
        self.learn(&header, from);
        show(&header, len, message);
        self.show_id(header.destination_id, from, message);
        message.facts.version = VERSIONS.iter().find(|(number, _)| Some(*number) == self.version).map(|(_, name)| *name);
        Step::Message { len }
    }
}

impl Quic {
    /// Whether the client begins another connection from the same port: within one it keeps the ID that its first Initial packet tells (RFC 9000 §7.2).
    fn begins_anew(&mut self, header: &Header<'_>, from: Side) -> bool {
        let Some(id) = header.source_id.filter(|id| header.kind == "Initial" && from == Side::Client && *id != self.client_id) else {
            return false;
        };
        !std::mem::replace(&mut self.client_id, id.to_vec()).is_empty()
    }

    /// Shows the connection ID of a packet of the application; for sums where it is another than before.
    fn show_id(&mut self, id: &[u8], from: Side, message: &mut Message) {
        let Some(told) = self.told.get_mut(from.index()).filter(|_| !id.is_empty()) else { return };
        if *told != id {
            *told = id.to_vec();
        } else if !message.wants_text {
            return;
        }
        message.row.connection_id.set_hex(id);
    }

    fn learn(&mut self, header: &Header<'_>, from: Side) {
        if let (Some(id), Some(mine)) = (header.source_id, self.id_bytes.get_mut(from.index())) {
            *mine = id.len();
        }
        self.version = header.version.filter(|&version| version != 0).or(self.version);
    }
}

fn show(header: &Header<'_>, len: usize, message: &mut Message) {
    let count = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let protected = len - header.bytes.min(len);
    let tag = if header.is_protected { TAG.min(protected) } else { 0 };
    message.row.kind = header.kind;
    message.row.header_bytes = count(len - protected);
    message.row.security_bytes = count(tag);
    message.row.opaque_bytes = count(protected - tag);
    message.fragment_bytes = if header.is_protected { count(protected) } else { 0 };
    // datagrams are filled up for the handshake's sake (RFC 9000 §14.1); behind a packet of the application nothing can stand
    message.facts.is_handshake = !matches!(header.kind, "1-RTT" | "0-RTT");
    message.facts.is_of_flight = message.facts.is_handshake && header.kind != "Padding";
    message.facts.is_encrypted = header.is_protected;
}

/// A long header of a known version, or one that asks for a list of those (RFC 9000 §15), with connection IDs of possible lengths (RFC 8999 §5.1). A
/// client's first datagram has 1,200 bytes (RFC 9000 §14.1).
fn probe(bytes: &[u8]) -> Likely {
    let [first, v1, v2, v3, v4, destination, ..] = *bytes else { return Likely::No };
    let version = u32::from_be_bytes([v1, v2, v3, v4]);
    let is_known =
        VERSIONS.iter().any(|(number, _)| *number == version) || version >> 8 == 0x00ff_0000 || version & 0x0f0f_0f0f == 0x0a0a_0a0a;
    match first >> 6 {
        0b11 if is_known && destination <= MOST_ID && Header::read(bytes, 0, false).is_ok() => Likely::Yes,
        0b01 => Likely::Maybe,
        _ => Likely::No,
    }
}

/// The handshake as one exchange: from the client's first Initial to the first packet of the application that the client sends (RFC 9001 §4.1.2). The
/// acknowledgement is the server's first packet, other than Retry and Version Negotiation, which only ask for another Initial.
#[derive(Debug, Default)]
struct Handshakes {
    open: Option<ExchangeId>,
    is_over: bool,
}

impl Pairing for Handshakes {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        if message.facts.begins_anew {
            self.end(exchanges);
            self.is_over = false;
        }
        let exchange = if message.facts.is_handshake { self.handshake(message, from, at, exchanges) } else { None };
        if message.kind == "1-RTT" && from == Side::Client {
            self.complete(at, exchanges);
        }
        Placement { exchange, ..Placement::default() }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        if let Some(exchange) = self.open.take() {
            exchanges.end(exchange, if self.is_over { "complete" } else { "unanswered" });
            exchanges.forget(exchange);
        }
    }
}

impl Handshakes {
    fn handshake(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        let Some(exchange) = self.open else {
            if !self.is_over && message.kind == "Initial" && from == Side::Client {
                self.open = Some(exchanges.open("handshake", message, from, at));
            }
            return self.open;
        };
        exchanges.join(exchange, message, at);
        if from == Side::Server && !matches!(message.kind, "Retry" | "Version Negotiation") {
            exchanges.acknowledge(exchange, at);
        }
        Some(exchange)
    }

    fn complete(&mut self, at: &Moment, exchanges: &mut Exchanges) {
        self.is_over = true;
        if let Some(exchange) = self.open.take() {
            exchanges.respond(exchange, at);
            exchanges.end(exchange, "complete");
            exchanges.forget(exchange);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001 A.2: the start of the client's Initial packet as it is sent, of 1,200 bytes.
    const INITIAL: &[u8] = &[
        0xc0, 0x00, 0x00, 0x00, 0x01, 0x08, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0x00, 0x00, 0x44, 0x9e, 0x7b, 0x9a, 0xec, 0x34,
    ];

    #[test]
    fn the_initial_packet_of_rfc_9001_is_read() {
        let mut message = Message::default();
        let step = Quic::default().next(Input { bytes: INITIAL, wire_bytes: 1200 }, Side::Client, &mut message);

        assert_eq!(Step::Message { len: 1200 }, step);
        assert_eq!(("Initial", 18, 16, 1166), (message.kind, message.header_bytes, message.security_bytes, message.opaque_bytes));
        assert_eq!((Some("QUIC v1"), Likely::Yes), (message.facts.version, probe(INITIAL)));
    }

    /// A datagram's packets: kind, header bytes, whether it is of the handshake and of its flights.
    fn packets(quic: &mut Quic, from: Side, mut datagram: &[u8]) -> Vec<(&'static str, u32, bool, bool)> {
        let mut found = Vec::new();
        while !datagram.is_empty() {
            let mut message = Message::default();
            let Step::Message { len } = quic.next(Input::whole(datagram), from, &mut message) else { return found };
            found.push((message.kind, message.header_bytes, message.facts.is_handshake, message.facts.is_of_flight));
            datagram = &datagram[len..];
        }
        found
    }

    /// RFC 9000 §12.2: behind a packet zeros are padding, for the handshake; RFC 9287 §3: at a datagram's start they may be a packet of the application.
    #[test]
    fn a_cleared_fixed_bit_is_padding_only_behind_another_packet() {
        let long = |first: u8, id: &[u8]| [&[first, 0, 0, 0, 1, 0, id.len() as u8][..], id, &[0, 0x14], &[9; 20]].concat();
        let mut quic = Quic::default();

        let first = packets(&mut quic, Side::Server, &[long(0xc0, &[7, 7]), vec![0; 30]].concat());
        assert_eq!(vec![("Initial", 11, true, true), ("Padding", 30, true, false)], first);
        assert_eq!(vec![("1-RTT", 3, false, false)], packets(&mut quic, Side::Client, &[[0x00, 7, 7].as_slice(), &[9; 27]].concat()));
    }

    /// RFC 9000 §15: a reserved version asks the server which it speaks.
    #[test]
    fn a_reserved_version_is_quic() {
        let mut reserved = INITIAL.to_vec();
        reserved[1..5].copy_from_slice(&[0x1a, 0x2a, 0x3a, 0x4a]);
        assert_eq!(Likely::Yes, probe(&reserved));
        reserved[1..5].copy_from_slice(b"Q046");
        assert_eq!(Likely::No, probe(&reserved));
    }

    /// RFC 9000 §7.2: the client's ID stays the same for a connection, whose Initial packets may come again.
    #[test]
    fn another_id_of_the_client_begins_another_connection() {
        let initial = |id: u8| [&[0xc0, 0, 0, 0, 1, 1, 9, 2, id, id, 0, 0x14][..], &[9; 20]].concat();
        let mut quic = Quic::default();
        let mut anew = |from, id| {
            let mut message = Message::default();
            quic.next(Input::whole(&initial(id)), from, &mut message);
            message.facts.begins_anew
        };

        use Side::{Client, Server};
        let told = [(Client, 1), (Server, 5), (Client, 1), (Client, 2), (Server, 6), (Client, 2)].map(|(from, id)| anew(from, id));
        assert_eq!([false, false, false, true, false, false], told);
    }

    #[test]
    fn variable_length_integers_are_those_of_rfc_9000_appendix_a() {
        let examples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Ok(value), varint(&mut Cursor::new(bytes)));
        }
    }
}
