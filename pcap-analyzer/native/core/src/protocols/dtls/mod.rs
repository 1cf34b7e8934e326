//! DTLS 1.0, 1.2 and 1.3 at record and handshake level, without keys.
//!
//! Standards: RFC 4347 (DTLS 1.0), RFC 6347 (DTLS 1.2), RFC 9147 (DTLS 1.3), RFC 9146 (connection ID), RFC 7983 (others on its ports).
//!
//! One message is one record; a datagram may hold several. Bytes are shared out as in TLS (`tls/mod.rs`), and the same messages are the handshake's,
//! with these differences:
//! - Up to DTLS 1.2 records of epoch 1 and above are protected. The first protected record behind a side's ChangeCipherSpec is its Finished, also where
//!   a connection ID hides its content type (RFC 9146 §4), which then takes a byte behind the content.
//! - Records of DTLS 1.3 behind the ServerHello have the unified header (RFC 9147 §4), which hides content type and sequence number. The two bits
//!   of their epoch tell handshake (2: kind "Handshake", variant "encrypted") from all else (kind "Application Data": data, ACK, tickets and alerts).
//! - Where other protocols share the ports, the first byte of a datagram tells whose it is (RFC 7983).
//! - The length of connection IDs is learnt from the hellos; without those, a record with one is opaque behind its first byte.
//!
//! A record was sent again where all its handshake fragments were there before (same message_seq, RFC 6347 §4.2.4), where a side's
//! ChangeCipherSpec or encrypted handshake record of the same length comes again, and where epoch and sequence number are those of a record of the last 64
//! (a datagram that was repeated by the network, or captured twice). Repetitions that encryption hides are not seen.

mod header;
mod reassembly;
mod replay;
#[cfg(test)]
mod tests;

use super::tls::{self, Association, HandshakePairing};
use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::message::{Message, Side};
use crate::security::Version;
use header::{Plain, Unified};
use reassembly::{Fragment, Reassembly};
use replay::Windows;

/// DTLS.
pub const DTLS: Protocol = Protocol {
    name: "dtls",
    decode_as: "dtls",
    standards: &["RFC 4347", "RFC 6347", "RFC 9147", "RFC 9146", "RFC 7983"],
    carrier: Carrier::Datagram,
    is_security: true,
    carries: None,
    ports: PORTS,
    probe,
    connection_id: Some(connection_id),
    decoder: |_| Box::new(DtlsDecoder::new()),
    pairing: || Box::new(HandshakePairing::default()),
    wireshark: &[
        ("dtls.record.content_type", "content_type"),
        ("dtls.record.version", "version"),
        ("dtls.record.epoch", "epoch"),
        ("dtls.record.sequence_number", "sequence_number"),
        ("dtls.record.connection_id", "connection_id"),
        ("dtls.handshake.extensions_server_name", "server_name"),
        ("dtls.handshake.extensions_alpn_str", "alpn"),
    ],
};

/// CoAP over DTLS (RFC 7252 §12.7), OpenSSL's example port, and others whose port IANA reserves for DTLS (RFC 8094, STUN, RFC 6012, RFC 6353).
const PORTS: &[Port] = &[Port::Udp(5684), Port::Udp(4433), Port::Udp(853), Port::Udp(5349), Port::Udp(6514), Port::Udp(10161)];

/// Records that fill the datagram exactly, the first of a version that is in use, are enough; unified headers could be anything's.
fn probe(bytes: &[u8]) -> Likely {
    let mut rest = bytes;
    while let Some(header) = Plain::read(rest, 0).filter(|header| header.fault().is_none()) {
        // The length of a connection ID is not known here: such a record is taken for the last one.
        if header.content_type == tls::TLS12_CID {
            return if rest.len() == bytes.len() { Likely::Maybe } else { Likely::Yes };
        }
        match rest.get(header.len()..) {
            None => return Likely::Maybe,
            Some([]) => return Likely::Yes,
            Some(behind) => rest = behind,
        }
    }
    let is_unified = Unified::read(rest, None).is_some_and(|header| header.fits(rest.len()));
    match (is_unified, rest.len() == bytes.len()) {
        (true, false) => Likely::Yes,
        (true, true) => Likely::Maybe,
        (false, _) => Likely::No,
    }
}

/// Records with a connection ID (RFC 9146 §4: type, version, epoch and sequence number before it; RFC 9147 §4: the first byte's bit C).
fn connection_id(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.first()? {
        &tls::TLS12_CID => bytes.get(11..),
        first if Unified::is_one(*first) && first & Unified::CONNECTION_ID != 0 => bytes.get(1..),
        _ => None,
    }
}

/// The first byte of datagrams with records, where other protocols share the ports (RFC 7983 §7, RFC 9443 §3): STUN has 0 to 3, ZRTP 16 to 19, TURN
/// channels, QUIC and RTP 64 to 255. What nobody has is damaged.
const fn is_of_other(first: u8) -> bool {
    matches!(first, 0..=3 | 16..=19 | 64..=255)
}

struct DtlsDecoder {
    association: Association,
    sides: [Sender; 2],
}

/// What is known of what one side sent.
#[derive(Debug, Default)]
struct Sender {
    reassembly: Reassembly,
    windows: Windows,
    /// Epoch of its ChangeCipherSpec.
    changed_in: Option<u16>,
    /// Its next protected record is its Finished.
    is_finished_due: bool,
    /// Its last record was its ChangeCipherSpec once more.
    is_changed_again: bool,
    /// Length of its last encrypted handshake record.
    encrypted_handshake: Option<usize>,
}

impl Sender {
    /// Whether a protected record of this length is its Finished where its type is hidden, or that once more.
    fn is_finished(&mut self, length: usize) -> bool {
        let is_again = std::mem::take(&mut self.is_changed_again) && self.encrypted_handshake == Some(length);
        self.is_finished_due || is_again
    }
}

impl Decoder for DtlsDecoder {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let Some(first) = input.bytes.first() else { return Step::NeedMore { at_least: 1 } };
        if Unified::is_one(*first) {
            return self.unified(input, from, message);
        }
        let connection_id = self.connection_id_bytes(from, *first);
        let Some(header) = Plain::read(input.bytes, connection_id) else {
            return Step::NeedMore { at_least: Plain::size(connection_id).max(input.bytes.len() + 1) };
        };
        if let Some(why) = header.fault() {
            return Step::Malformed { len: input.wire_bytes, why };
        }
        let len = header.len();
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        header.show(input.bytes, message);
        let fragment = input.bytes.get(header.size..len.min(input.bytes.len())).unwrap_or(&[]);
        self.record(&header, fragment, from, message);
        message.facts.is_of_flight &= !message.is_retransmission;
        Step::Message { len }
    }

    fn is_of_other(&self, datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|&first| is_of_other(first))
    }
}

impl DtlsDecoder {
    fn new() -> Self {
        Self { association: Association::new(true), sides: [Sender::default(), Sender::default()] }
    }

    fn connection_id_bytes(&self, from: Side, content_type: u8) -> usize {
        let agreed = self.association.connection_id_bytes.get(from.index()).copied().flatten();
        if content_type == tls::TLS12_CID {
            agreed.unwrap_or_default().into()
        } else {
            0
        }
    }

    fn sender(&mut self, from: Side) -> &mut Sender {
        let [client, server] = &mut self.sides;
        match from {
            Side::Client => client,
            Side::Server => server,
        }
    }

    #[inline]
    fn record(&mut self, header: &Plain, fragment: &[u8], from: Side, message: &mut Message) {
        let is_replayed = self.sender(from).windows.is_replayed(header.epoch, header.sequence_number);
        message.is_retransmission = is_replayed;
        message.kind = tls::content_type(header.content_type).unwrap_or_default();
        if self.association.agreement.is_none() && header.epoch > 0 {
            message.facts.version = Version::from_number(header.version).map(Version::name);
        }
        let length = usize::from(header.length);
        match header.content_type {
            tls::CHANGE_CIPHER_SPEC => self.change_cipher_spec(header, from, message),
            tls::HANDSHAKE if header.epoch == 0 => self.handshake(header, fragment, from, message),
            tls::ALERT if header.length == 2 => {
                tls::is_all_security(message, header.len());
                tls::show_alert(message, fragment);
            }
            tls::ACK if header.epoch == 0 => {
                tls::is_all_security(message, header.len());
                message.facts.is_handshake = true;
            }
            tls::APPLICATION_DATA => tls::protect(&self.association, message, header.size, length),
            _ => self.protected(header, from, message),
        }
    }

    /// A protected record that is not plainly application data.
    fn protected(&mut self, header: &Plain, from: Side, message: &mut Message) {
        let length = usize::from(header.length);
        let sender = self.sender(from);
        let is_finished = sender.is_finished(length);
        if header.content_type == tls::HANDSHAKE || (header.content_type == tls::TLS12_CID && is_finished) {
            let is_again = !sender.is_finished_due && sender.encrypted_handshake == Some(length);
            message.is_retransmission |= is_again;
            sender.is_finished_due = false;
            sender.encrypted_handshake = Some(length);
            tls::protect_handshake(&self.association, message, header.size, length);
            return;
        }
        tls::protect(&self.association, message, header.size, length);
        if header.content_type != tls::TLS12_CID {
            tls::is_all_security(message, header.len());
            message.opaque_bytes = 0;
            message.variant = tls::ENCRYPTED;
        }
    }

    fn change_cipher_spec(&mut self, header: &Plain, from: Side, message: &mut Message) {
        tls::is_all_security(message, header.len());
        message.facts.is_handshake = true;
        self.association.change_cipher_spec(from, message);
        let sender = self.sender(from);
        let is_again = sender.changed_in == Some(header.epoch);
        message.is_retransmission |= is_again;
        sender.is_finished_due |= !is_again;
        sender.is_changed_again = is_again;
        sender.changed_in = Some(header.epoch);
    }

    fn handshake(&mut self, header: &Plain, fragment: &[u8], from: Side, message: &mut Message) {
        tls::is_all_security(message, header.len());
        tls::carries_handshake_on(message);
        let mut is_new = false;
        let mut rest = fragment;
        while let Some((part, behind)) = Fragment::read(rest) {
            rest = behind;
            let Some(name) = tls::handshake_type(part.kind) else { break };
            if part.is_client_hello_of_another(&self.association) {
                self.sides = [Sender::default(), Sender::default()];
                self.association = Association::new(true);
                self.sender(from).windows.is_replayed(header.epoch, header.sequence_number);
                message.is_retransmission = false;
            }
            is_new |= self.fragment(&part, name, from, message);
        }
        if message.variant.is_empty() {
            message.variant = tls::ENCRYPTED;
            is_new = true;
        }
        message.is_retransmission |= !is_new;
    }

    /// Shows a fragment of a handshake message, and the message that it completes. Whether it brings what was not there before.
    fn fragment(&mut self, part: &Fragment<'_>, mut name: &'static str, from: Side, message: &mut Message) -> bool {
        let added = self.sides.get_mut(from.index()).map(|sender| sender.reassembly.add(part)).unwrap_or_default();
        if let Some(body) = &added.whole {
            name = self.association.read(part.kind, body, from, message);
        }
        if message.variant.is_empty() {
            message.variant = name;
            message.message_id = Some(part.message_seq);
        }
        if message.wants_text {
            message.handshake_types.more(",").push_str(name);
        }
        added.is_new
    }

    /// RFC 9147 §4: a record of DTLS 1.3.
    fn unified(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let agreed = self.association.connection_id_bytes.get(from.index()).copied().flatten();
        let Some(header) = Unified::read(input.bytes, agreed) else {
            let at_least = Unified::most(agreed).max(input.bytes.len() + 1);
            return Step::NeedMore { at_least };
        };
        let size = header.size.min(input.wire_bytes);
        let len = header.length.map_or(input.wire_bytes, |length| size + usize::from(length));
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        header.show(input.bytes, message);
        message.facts.version = Some(Version::Dtls13.name());
        if header.is_handshake() {
            message.kind = "Handshake";
            tls::protect_handshake(&self.association, message, size, len - size);
        } else {
            message.kind = "Application Data";
            tls::protect(&self.association, message, size, len - size);
        }
        Step::Message { len }
    }
}
