//! WebSocket (RFC 6455): the handshake, which is HTTP/1.1's, and frames.
//!
//! Byte columns: a frame's header is header, its content payload. Content of the subprotocols mqtt (MQTT 5 §6), coap (RFC 8323 §4) and xmpp (RFC 7395)
//! becomes messages of these, whose headers the frame's header adds to. Compressed content (RFC 7692) counts as on the wire; what it was before is the column
//! `uncompressed_bytes`.

mod deflate;

use super::http1::{head, Head, Http1, Turns, PORTS};
use super::{by_row, Carrier, Decoder, Decoding, Input, Likely, Malformed, Pairing, Protocol, Step};
use crate::bytes::{count, hash};
use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use deflate::{Inflater, Plain};
use std::collections::VecDeque;

/// WebSocket.
pub const WEBSOCKET: Protocol = Protocol {
    name: "websocket",
    decode_as: "websocket",
    standards: &["RFC 6455", "RFC 7692"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: PORTS,
    probe,
    connection_id: None,
    decoder: |_| Box::new(Http1::before_frames()),
    pairing: || Box::<Talk>::default(),
    wireshark: &[
        ("websocket.opcode", "kind"),
        ("websocket.payload_length", "payload_bytes"),
        ("websocket.payload_length_ext_16", "payload_bytes"),
        ("websocket.payload_length_ext_64", "payload_bytes"),
    ],
};

/// Subprotocols whose content is decoded: name, and the row that decodes it.
const SUBPROTOCOLS: [(&str, &str); 4] = [("mqtt", "mqtt"), ("mqttv3.1", "mqtt"), ("coap", "coap_ws"), ("xmpp", "xmpp")];

/// RFC 6455 §5.2: opcodes.
const OPCODES: [(u8, &str); 6] = [(0, "Continuation"), (1, "Text"), (2, "Binary"), (8, "Close"), (9, "Ping"), (10, "Pong")];

/// The frames of a connection.
#[derive(Debug, Default)]
pub(super) struct WebSocket {
    carries: Option<&'static str>,
    /// Where compression was agreed.
    inflaters: Option<Box<[Inflater; 2]>>,
}

impl Decoder for WebSocket {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let Some(header) = frame_header(input.bytes) else {
            return Step::NeedMore { at_least: input.bytes.len() + 1 };
        };
        let Some((_, name)) = OPCODES.iter().find(|(number, _)| *number == header.opcode) else {
            return Step::Malformed {
                len: input.wire_bytes,
                why: Malformed { offset: 0, field: "opcode is reserved", section: "RFC 6455 §5.2" },
            };
        };
        let len = header.bytes.saturating_add(header.length);
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        message.row.kind = name;
        message.row.header_bytes = count(header.bytes);
        message.row.payload_bytes = count(header.length);
        let payload = input.bytes.get(header.bytes..len.min(input.bytes.len())).unwrap_or(&[]);
        if header.opcode < 8 {
            self.content(&header, payload, from, message);
        } else {
            message.content = header.unmask(payload);
            message.payload_digest = hash(&message.content);
        }
        Step::Message { len }
    }

    fn gap(&mut self, from: Side) {
        let inflater = self.inflaters.as_mut().and_then(|inflaters| inflaters.get_mut(from.index()));
        inflater.into_iter().for_each(Inflater::lose);
    }

    fn is_cut_start(&self, input: Input<'_>, from: Side) -> bool {
        let header = frame_header(input.bytes).filter(|header| header.is_plausible(input.bytes, from));
        header.is_some_and(|header| header.bytes.checked_add(header.length) == Some(input.wire_bytes))
    }

    /// Frames without compression that end where the bytes do, and hold what such frames hold.
    fn is_boundary(&self, bytes: &[u8], from: Side) -> Option<bool> {
        let mut rest = bytes;
        while !rest.is_empty() && self.inflaters.is_none() {
            let Some(header) = frame_header(rest).filter(|header| header.is_plausible(rest, from)) else { return Some(false) };
            let Some((frame, behind)) = rest.split_at_checked(header.bytes.saturating_add(header.length)) else { return Some(false) };
            let content = header.unmask(frame.get(header.bytes..).unwrap_or(&[]));
            if !self.could_hold(&header, &content) {
                return Some(false);
            }
            rest = behind;
        }
        Some(self.inflaters.is_none())
    }

    /// What a frame carries, or what was compressed with it, is read with the whole of it.
    fn wants_whole(&self) -> bool {
        self.carries.is_some() || self.inflaters.is_some()
    }
}

impl WebSocket {
    /// The frames behind a server's answer 101 (RFC 6455 §4.2.2).
    pub(super) fn agreed(answer: &Head) -> Self {
        let chosen = answer.subprotocol.as_deref();
        Self {
            carries: SUBPROTOCOLS.iter().find(|(name, _)| chosen == Some(name)).map(|(_, row)| *row),
            inflaters: answer.extensions.as_deref().and_then(inflaters).map(Box::new),
        }
    }

    /// Whether such a frame can hold these bytes: text is UTF-8 (RFC 6455 §5.6), and what is carried says how long it is.
    fn could_hold(&self, header: &FrameHeader, content: &[u8]) -> bool {
        match (header.opcode, self.carries) {
            (1, _) => !content.is_empty() && std::str::from_utf8(content).is_ok(),
            (2, Some(row)) => by_row(row).is_some_and(|row| is_whole(row, content)),
            (opcode, _) => opcode > 2,
        }
    }

    /// What a data frame holds.
    fn content(&mut self, header: &FrameHeader, payload: &[u8], from: Side, message: &mut Message) {
        let is_whole = payload.len() == header.length;
        let inflater = self.inflaters.as_mut().and_then(|inflaters| inflaters.get_mut(from.index()));
        let Some(inflater) = inflater else {
            message.facts.is_compressed = header.is_compressed;
            message.carries = self.carries.filter(|_| is_whole && !header.is_compressed);
            // what is neither decoded nor shown need not be copied
            if message.carries.is_some() || message.wants_text {
                message.content = header.unmask(payload);
            }
            return;
        };
        let starts = (header.opcode != 0).then_some(header.is_compressed);
        let Some(Plain { bytes, content }) = inflater.frame(&header.unmask(payload), is_whole, starts, header.is_last) else {
            message.facts.is_compressed = true;
            return;
        };
        message.row.uncompressed_bytes = Some(count(bytes));
        message.carries = self.carries.filter(|_| content.is_some());
        message.content = content.unwrap_or_default();
    }
}

/// For client and server, where the server's answer agrees to permessage-deflate (RFC 7692 §5.1, §7.1.1).
fn inflaters(extensions: &str) -> Option<[Inflater; 2]> {
    let agreed = extensions.split(',').find(|extension| extension.split(';').next().map(str::trim) == Some("permessage-deflate"))?;
    let side = |parameter: &str| Inflater::new(agreed.split(';').any(|told| told.trim() == parameter));
    Some([side("client_no_context_takeover"), side("server_no_context_takeover")])
}

/// A frame's header (RFC 6455 §5.2).
#[derive(Debug, Clone, Copy)]
struct FrameHeader {
    opcode: u8,
    is_last: bool,
    is_compressed: bool,
    bytes: usize,
    length: usize,
    mask: [u8; 4],
}

/// Whether bytes are whole messages of a protocol, one at least.
fn is_whole(row: &Protocol, bytes: &[u8]) -> bool {
    let (mut decoder, mut rest) = ((row.decoder)(&Decoding::default()), bytes);
    loop {
        match decoder.next(Input::whole(rest), Side::Client, &mut Message::default()) {
            Step::Message { len } if len == rest.len() => return true,
            Step::Message { len } => rest = rest.get(len..).unwrap_or(&[]),
            _ => return false,
        }
    }
}

impl FrameHeader {
    /// Whether it begins a whole message, from this side (RFC 6455 §5.1, §5.2).
    fn is_plausible(&self, bytes: &[u8], from: Side) -> bool {
        let is_masked = bytes.get(1).is_some_and(|second| second & 0x80 != 0);
        let is_known = matches!(bytes.first(), Some(0x81 | 0x82 | 0x88..=0x8a));
        is_known && is_masked == (from == Side::Client) && (self.opcode < 8 || self.length < 126)
    }

    /// RFC 6455 §5.3
    fn unmask(&self, payload: &[u8]) -> Vec<u8> {
        payload.iter().zip(self.mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
    }
}

fn frame_header(bytes: &[u8]) -> Option<FrameHeader> {
    let mut cursor = crate::bytes::Cursor::new(bytes);
    let [first, second] = cursor.array().ok()?;
    let length = match second & 0x7f {
        126 => u64::from(cursor.u16().ok()?),
        127 => cursor.u64().ok()?,
        short => short.into(),
    };
    let mask = if second & 0x80 == 0 { [0; 4] } else { cursor.array().ok()? };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (is_last, is_compressed) = (first & 0x80 != 0, first & 0x40 != 0);
    Some(FrameHeader { opcode: first & 0x0f, is_last, is_compressed, bytes: cursor.offset(), length, mask })
}

/// A request that asks for the change, or the answer that grants it.
fn probe(bytes: &[u8]) -> Likely {
    match head(bytes) {
        Ok(head) if head.upgrade.as_deref() == Some("websocket") => Likely::Yes,
        _ => Likely::No,
    }
}

/// The handshake is an exchange of HTTP's; pings are answered by pongs (§5.5.3).
#[derive(Debug, Default)]
struct Talk {
    turns: Turns,
    /// Pings that have no pong yet, by their application data.
    pings: [VecDeque<(u64, ExchangeId)>; 2],
}

impl Pairing for Talk {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        match message.kind {
            "Request" | "Response" => self.turns.place(message, from, at, exchanges),
            "Ping" => {
                let exchange = exchanges.open("ping", message, from, at);
                if let Some(pings) = self.pings.get_mut(from.index()) {
                    pings.push_back((message.payload_digest, exchange));
                }
                Placement::of(exchange)
            }
            "Pong" => self.pong(message, from, at, exchanges),
            "Close" => Placement::default(),
            _ => Placement { is_data: message.payload_bytes > 0, ..Placement::default() },
        }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        self.turns.end(exchanges);
        for (_, exchange) in self.pings.iter_mut().flat_map(|pings| pings.drain(..)) {
            exchanges.end(exchange, "unanswered");
            exchanges.forget(exchange);
        }
    }
}

impl Talk {
    /// A pong has its ping's application data; it may answer for those before, and without one it answers none (§5.5.3).
    fn pong(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        let Some(pings) = self.pings.get_mut(from.peer().index()) else { return Placement::default() };
        let Some(place) = pings.iter().position(|(digest, _)| *digest == message.payload_digest) else { return Placement::default() };
        for (_, passed) in pings.drain(..place) {
            exchanges.end(passed, "unanswered");
            exchanges.forget(passed);
        }
        let Some((_, exchange)) = pings.pop_front() else { return Placement::default() };
        exchanges.join(exchange, message, at);
        exchanges.respond(exchange, at);
        exchanges.end(exchange, "complete");
        exchanges.forget(exchange);
        Placement::of(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_the_standard_are_read() {
        // RFC 6455 §5.7: a single-frame masked and an unmasked text message "Hello"
        for (bytes, header_bytes) in [(&b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"[..], 6), (b"\x81\x05Hello", 2)] {
            let mut socket = WebSocket { carries: Some("mqtt"), inflaters: None };
            let mut message = Message::default();
            let step = socket.next(Input::whole(bytes), Side::Client, &mut message);

            assert_eq!(
                (Step::Message { len: bytes.len() }, "Text", header_bytes, 5),
                (step, message.kind, message.header_bytes, message.payload_bytes)
            );
            assert_eq!(b"Hello", message.content.as_slice());
        }
    }

    #[test]
    fn an_upgrade_is_telling() {
        assert_eq!(Likely::Yes, probe(b"GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n"));
        assert_eq!(Likely::No, probe(b"GET /chat HTTP/1.1\r\nHost: h\r\n\r\n"));
    }
}
