//! CoAP over UDP (RFC 7252) with Observe (RFC 7641), block-wise transfers (RFC 7959, RFC 9177) and OSCORE's outer messages (RFC 8613).
//!
//! Byte columns: the header of four bytes, token and payload marker are header bytes; a message of the capture's cut part counts as payload
//! behind a marker, else as opaque.

mod codes;
mod ids;
mod observe;
mod options;
mod oscore;
mod pairing;
mod sender;
mod transfers;

use codes::is_signal;
pub use codes::{is_known, is_request, variant};
pub use options::{read as read_options, Fault as OptionFault};
pub use oscore::show_inner;
pub use pairing::Talk;

use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::bytes::{count, Cursor};
use crate::message::{Message, Side, Token};
use options::Fault;

/// CoAP in datagrams.
pub const COAP: Protocol = Protocol {
    name: "coap",
    decode_as: "coap",
    standards: &["RFC 7252", "RFC 7641", "RFC 7959", "RFC 7967", "RFC 8613", "RFC 8768", "RFC 9175", "RFC 9177"],
    carrier: Carrier::Datagram,
    is_security: false,
    carries: None,
    ports: &[Port::Udp(5683), Port::Dtls(5684)],
    probe,
    connection_id: None,
    decoder: |_| Box::new(Coap),
    pairing: || Box::<Talk>::default(),
    wireshark: &[
        ("coap.version", "version"),
        ("coap.code", "code"),
        ("coap.mid", "message_id"),
        ("coap.token", "token"),
        ("coap.opt.observe_req", "observe"),
        ("coap.opt.observe_rsp", "observe"),
        ("coap.opt.uri_path", "uri_path"),
        ("coap.opt.uri_query", "uri_query"),
        ("coap.opt.hop_limit", "hop_limit"),
    ],
};

/// RFC 7252 §3, Table 1 of §4.3: Confirmable, Non-confirmable, Acknowledgement, Reset.
pub const TYPES: [&str; 4] = ["CON", "NON", "ACK", "RST"];

struct Coap;

impl Decoder for Coap {
    #[inline]
    fn next(&mut self, input: Input<'_>, _: Side, message: &mut Message) -> Step {
        let len = input.wire_bytes;
        match decode(input.bytes, message) {
            Ok(Some(payload)) if payload.is_missing(len) => return malformed(payload.start - 1, NO_PAYLOAD, "RFC 7252 §3", len),
            Ok(Some(payload)) => fill(message, payload, input),
            Ok(None) if len > 4 => return malformed(4, "bytes behind an Empty message", "RFC 7252 §4.1", len),
            Ok(None) => {}
            Err(Fault::Short { known }) if input.bytes.len() < len && known <= len => fill_cut(message, input.bytes, known, len),
            Err(Fault::Short { .. }) if len < 4 => return malformed(0, "message is shorter than its header", "RFC 7252 §3", len),
            Err(Fault::Short { .. }) => return malformed(input.bytes.len(), "option or token runs past the message", "RFC 7252 §3", len),
            Err(Fault::Broken(why)) => return Step::Malformed { len, why },
        }
        Step::Message { len }
    }
}

const fn malformed(offset: usize, field: &'static str, section: &'static str, len: usize) -> Step {
    Step::Malformed { len, why: Malformed { offset, field, section } }
}

const fn broken(offset: usize, field: &'static str, section: &'static str) -> Fault {
    Fault::Broken(Malformed { offset, field, section })
}

/// Where the payload begins, and where the options do.
#[derive(Debug, Clone, Copy)]
struct Payload {
    options: usize,
    start: usize,
    has_marker: bool,
}

const NO_PAYLOAD: &str = "payload marker without payload";

impl Payload {
    /// Whether its marker stands at the end of a message of `len` bytes.
    const fn is_missing(&self, len: usize) -> bool {
        self.has_marker && self.start == len
    }
}

/// RFC 7252 §3. None for an Empty message.
#[inline]
fn decode(bytes: &[u8], message: &mut Message) -> Result<Option<Payload>, Fault> {
    let mut cursor = Cursor::new(bytes);
    let [first, code, high, low] = cursor.array().map_err(|_| Fault::Short { known: bytes.len() })?;
    let (version, token_length) = (first >> 6, first & 0x0f);
    let row = &mut message.row;
    row.version = Some(version.into());
    row.kind = TYPES.get(usize::from(first >> 4 & 3)).copied().unwrap_or("");
    row.code = Some(code);
    row.message_id = Some(u16::from_be_bytes([high, low]));
    if version != 1 {
        return Err(broken(0, "version is not 1", "RFC 7252 §3"));
    }
    if token_length > 8 {
        return Err(broken(0, "token length is reserved (13 and 14: RFC 8974, by agreement only)", "RFC 7252 §3"));
    }
    row.variant = variant(code);
    message.facts.version = Some("CoAP");
    if code == 0 {
        if bytes.len() > 4 {
            return Err(broken(4, "bytes behind an Empty message", "RFC 7252 §4.1"));
        }
        row.header_bytes = 4;
        return Ok(None);
    }
    let token = cursor.take(token_length.into()).map_err(|short| Fault::Short { known: short.needed })?;
    message.token = Token::new(token);
    if message.wants_text {
        message.row.token.set_hex(token);
    }
    message.facts.is_opening = is_request(code);
    let start = cursor.offset();
    let told = options::read(&mut cursor, message)?;
    Ok(Some(Payload { options: start, start: cursor.offset(), has_marker: told.has_marker }))
}

#[inline]
fn fill(message: &mut Message, payload: Payload, input: Input<'_>) {
    let marker = usize::from(payload.has_marker);
    message.row.header_bytes = count(payload.options + marker);
    let (options, rest) = (payload.start - payload.options - marker, input.wire_bytes - payload.start);
    divide(message, options, rest, payload.has_marker);
    if payload.has_marker {
        message.payload_range = payload.start..input.bytes.len();
    }
}

/// Counts options and what is behind them. The OSCORE option is security's, and what it protects is opaque as long as it is not opened.
#[inline]
pub fn divide(message: &mut Message, options: usize, rest: usize, has_payload: bool) {
    let row = &mut message.row;
    row.option_bytes = count(options) - row.security_bytes;
    if row.is_oscore && has_payload {
        message.facts.is_encrypted = true;
        message.facts.protection = Some("OSCORE");
    }
    if has_payload && !row.is_oscore {
        row.payload_bytes = count(rest);
    } else {
        row.opaque_bytes = count(rest);
    }
}

/// A message that the snap length cut within its token or an option, of which its bytes up to `known` are known.
fn fill_cut(message: &mut Message, bytes: &[u8], known: usize, len: usize) {
    let token_length = bytes.first().map_or(0, |first| first & 0x0f);
    let header = known.min(4 + usize::from(token_length));
    message.row.header_bytes = count(header);
    divide(message, known - header, len - known, false);
}

/// Random bytes look like version 1 a quarter of the time (trap 80): only a message whose code, type and options are all right is one for sure.
fn probe(bytes: &[u8]) -> Likely {
    let mut message = Message::default();
    let Ok(payload) = decode(bytes, &mut message) else { return Likely::No };
    let code = message.row.code.unwrap_or(0);
    let is_fitting = match message.row.kind {
        "CON" | "NON" => true,
        "ACK" => !is_request(code),
        _ => code == 0,
    };
    if !is_known(code) || is_signal(code) || !is_fitting {
        return Likely::No;
    }
    let Some(payload) = payload else { return Likely::Maybe };
    if payload.is_missing(bytes.len()) {
        return Likely::No;
    }
    let mut cursor = Cursor::new(bytes.get(4 + message.token.len()..).unwrap_or(&[]));
    match options::read(&mut cursor, &mut Message::default()) {
        Ok(told) if told.is_known && bytes.len() > 8 => Likely::Yes,
        _ => Likely::Maybe,
    }
}

#[cfg(test)]
mod tests;
