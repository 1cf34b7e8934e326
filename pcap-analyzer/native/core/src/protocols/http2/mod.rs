//! HTTP/2 (RFC 9113) with HPACK (RFC 7541).
//!
//! One message is one frame. Byte columns: the frame's header with padding and priority is header, a field block as it is compressed is option, DATA is
//! payload; the column `field_section_bytes` tells what the field block was before compression.

mod instructions;
mod streams;

pub(super) use streams::Streams;

use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::bytes::{count, Cursor};
use crate::message::{Message, Side};

/// HTTP/2.
pub const HTTP2: Protocol = Protocol {
    name: "http2",
    decode_as: "http2",
    standards: &["RFC 9113", "RFC 7541"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: &[Port::Tls(443), Port::Tls(8443)],
    probe,
    connection_id: None,
    decoder: |_| Box::<Http2>::default(),
    pairing: || Box::<Streams>::default(),
    wireshark: &[("http2.type", "kind"), ("http2.streamid", "stream_id")],
};

/// RFC 9113 §3.4
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// RFC 9113 §4.1
const HEADER: usize = 9;
/// RFC 9113 §6, RFC 7838 §4, RFC 8336 §2, RFC 9218 §7.1: type, name.
const TYPES: [(u8, &str); 13] = [
    (DATA, "DATA"),
    (HEADERS, "HEADERS"),
    (2, "PRIORITY"),
    (3, "RST_STREAM"),
    (SETTINGS, "SETTINGS"),
    (PUSH_PROMISE, "PUSH_PROMISE"),
    (PING, "PING"),
    (7, "GOAWAY"),
    (8, "WINDOW_UPDATE"),
    (CONTINUATION, "CONTINUATION"),
    (10, "ALTSVC"),
    (12, "ORIGIN"),
    (16, "PRIORITY_UPDATE"),
];
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// RFC 9113 §6: flags.
const END_STREAM: u8 = 0x01;
const ACK: u8 = 0x01;
const END_HEADERS: u8 = 0x04;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;
/// Longest frame where nothing longer was agreed (RFC 9113 §4.2); what is longer is not taken for a boundary.
const MOST_AT_BOUNDARY: usize = 16_384;

/// A frame's header (RFC 9113 §4.1).
#[derive(Debug, Clone, Copy)]
struct Header {
    length: usize,
    kind: u8,
    flags: u8,
    stream_id: u32,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let length = cursor.u24().ok()?;
        let [kind, flags] = cursor.array().ok()?;
        let stream_id = cursor.u32().ok()? & 0x7fff_ffff;
        Some(Self { length: length as usize, kind, flags, stream_id })
    }

    /// Whether it stands on the stream and has the length that its type asks for (RFC 9113 §6).
    fn is_plausible(&self) -> bool {
        let is_connection = self.stream_id == 0;
        self.length <= MOST_AT_BOUNDARY
            && match self.kind {
                DATA | HEADERS | CONTINUATION => !is_connection,
                2 => !is_connection && self.length == 5,
                3 => !is_connection && self.length == 4,
                SETTINGS => is_connection && self.length.is_multiple_of(6) && self.flags & !ACK == 0,
                PUSH_PROMISE => !is_connection && self.length > 4,
                PING => is_connection && self.length == 8,
                7 => is_connection && self.length >= 8,
                8 => self.length == 4,
                _ => false,
            }
    }
}

/// The dynamic table of one direction; none where a part of what built it is not in the capture.
struct FieldBlocks {
    decoder: Option<fluke_hpack::Decoder<'static>>,
    /// Field block fragments of a HEADERS whose CONTINUATION has not come (RFC 9113 §4.3).
    begun: Vec<u8>,
    /// Whether that HEADERS ends the stream.
    is_last: bool,
}

impl Default for FieldBlocks {
    fn default() -> Self {
        Self { decoder: Some(fluke_hpack::Decoder::new()), begun: Vec::new(), is_last: false }
    }
}

/// Longest field block that is put together.
const MOST_FIELDS: usize = 1 << 18;

/// What a field section tells.
#[derive(Debug, Default)]
struct Section {
    bytes: u32,
    method: Option<&'static str>,
    status: Option<&'static str>,
    path: String,
}

impl FieldBlocks {
    /// Whether a frame is the last of its stream from its sender: END_STREAM of a HEADERS counts for its CONTINUATION (RFC 9113 §6.2).
    fn ends_stream(&mut self, header: &Header) -> bool {
        let is_block = matches!(header.kind, HEADERS | CONTINUATION);
        let is_last = match header.kind {
            DATA | HEADERS => header.flags & END_STREAM != 0,
            CONTINUATION => self.is_last,
            _ => false,
        };
        let is_continued = is_block && header.flags & END_HEADERS == 0;
        if is_block {
            self.is_last = is_last && is_continued;
        }
        is_last && !is_continued
    }

    /// Adds a fragment. What the field section tells where this ends it.
    fn add(&mut self, fragment: &[u8], is_whole: bool, is_end: bool) -> Option<Section> {
        if !is_whole || self.begun.len() + fragment.len() > MOST_FIELDS {
            self.decoder = None;
        }
        let decoder = self.decoder.as_mut()?;
        self.begun.extend_from_slice(fragment);
        if !is_end {
            return None;
        }
        let block = std::mem::take(&mut self.begun);
        let mut section = Section::default();
        if !instructions::are_whole(&block) || decoder.decode_with_cb(&block, |name, value| section.take(&name, &value)).is_err() {
            self.decoder = None;
            return None;
        }
        Some(section)
    }
}

impl Section {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        self.bytes = self.bytes.saturating_add(count(name.len() + value.len()));
        let text = std::str::from_utf8(value).unwrap_or("");
        match name {
            b":method" => self.method = super::http1::method(text),
            b":status" => self.status = super::http1::status(text),
            b":path" => text.clone_into(&mut self.path),
            _ => {}
        }
    }
}

#[derive(Default)]
struct Http2 {
    fields: [FieldBlocks; 2],
}

impl Decoder for Http2 {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let bytes = input.bytes;
        message.facts.version = Some("HTTP/2");
        if from == Side::Client && bytes.first() == Some(&b'P') {
            return preface(input, message);
        }
        let Some(header) = Header::read(bytes) else { return Step::NeedMore { at_least: HEADER.max(bytes.len() + 1) } };
        let name = match TYPES.iter().find(|(kind, _)| *kind == header.kind) {
            Some((_, name)) => name,
            // who does not know an extension passes over its frames (RFC 9113 §5.5)
            None if header.length <= MOST_AT_BOUNDARY => "unknown",
            None => {
                let why = Malformed { offset: 3, field: "type is not registered", section: "RFC 9113 §4.1" };
                return Step::Malformed { len: input.wire_bytes, why };
            }
        };
        let len = HEADER + header.length;
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        message.row.kind = name;
        message.row.stream_id = Some(header.stream_id.into());
        let fields = self.fields.get_mut(from.index());
        message.facts.is_end_of_stream = fields.is_some_and(|fields| fields.ends_stream(&header));
        message.row.header_bytes = count(len);
        self.content(&header, bytes.get(..len).unwrap_or(bytes), len, from, message);
        Step::Message { len }
    }

    /// What the missing bytes put into the dynamic table is not known.
    fn gap(&mut self, from: Side) {
        self.fields.get_mut(from.index()).into_iter().for_each(|fields| *fields = FieldBlocks { decoder: None, ..FieldBlocks::default() });
    }

    fn is_boundary(&self, bytes: &[u8], from: Side) -> Option<bool> {
        let is_frame = Header::read(bytes).is_some_and(|header| header.is_plausible());
        Some(is_frame || (from == Side::Client && bytes.starts_with(PREFACE)))
    }
}

/// RFC 9113 §3.4
fn preface(input: Input<'_>, message: &mut Message) -> Step {
    if input.bytes.starts_with(PREFACE) {
        message.row.kind = "Magic";
        message.row.header_bytes = count(PREFACE.len());
        message.facts.is_opening = true;
        Step::Message { len: PREFACE.len() }
    } else if PREFACE.starts_with(input.bytes) {
        Step::NeedMore { at_least: PREFACE.len() }
    } else {
        let why = Malformed { offset: 0, field: "connection preface", section: "RFC 9113 §3.4" };
        Step::Malformed { len: input.wire_bytes, why }
    }
}

impl Http2 {
    fn content(&mut self, header: &Header, frame: &[u8], len: usize, from: Side, message: &mut Message) {
        let range = body(header, frame, len);
        let body_bytes = count(range.len());
        match header.kind {
            DATA => {
                message.row.payload_bytes = body_bytes;
                message.payload_range = range.start.min(frame.len())..range.end.min(frame.len());
            }
            HEADERS | PUSH_PROMISE | CONTINUATION => {
                message.row.option_bytes = body_bytes;
                let fragment = frame.get(range.clone()).unwrap_or(&[]);
                let is_whole = fragment.len() == range.len();
                let is_end = header.flags & END_HEADERS != 0;
                let section = self.fields.get_mut(from.index()).and_then(|fields| fields.add(fragment, is_whole, is_end));
                show_section(section, message);
                if header.kind == PUSH_PROMISE {
                    message.body_tag = promised(range.start, frame);
                }
            }
            SETTINGS | PING => {
                message.row.variant = if header.flags & ACK != 0 { "ACK" } else { "" };
                if header.kind == PING {
                    message.body_tag = crate::bytes::hash(frame.get(range).unwrap_or(&[]));
                }
            }
            _ => {}
        }
        message.row.header_bytes -= message.row.option_bytes + message.row.payload_bytes;
    }
}

/// Where the content stands between padding length, priority, promised stream and padding (RFC 9113 §6.1, §6.2, §6.6).
fn body(header: &Header, frame: &[u8], len: usize) -> std::ops::Range<usize> {
    let is_padded = header.flags & PADDED != 0 && matches!(header.kind, DATA | HEADERS | PUSH_PROMISE);
    let padding = if is_padded { frame.get(HEADER).copied().unwrap_or(0).into() } else { 0 };
    let before = usize::from(is_padded)
        + match header.kind {
            HEADERS if header.flags & PRIORITY != 0 => 5,
            PUSH_PROMISE => 4,
            _ => 0,
        };
    let start = (HEADER + before).min(len);
    start..len.saturating_sub(padding).max(start)
}

/// The stream that a PUSH_PROMISE promises stands before its field block (RFC 9113 §6.6).
fn promised(block: usize, frame: &[u8]) -> u64 {
    let stream_id = block.checked_sub(4).and_then(|at| Cursor::new(frame.get(at..)?).u32().ok());
    u64::from(stream_id.unwrap_or(0) & 0x7fff_ffff)
}

fn show_section(section: Option<Section>, message: &mut Message) {
    let Some(section) = section else { return };
    message.row.field_section_bytes = Some(section.bytes);
    message.row.variant = section.method.or(section.status).unwrap_or("");
    message.facts.is_opening = section.method.is_some();
    if section.path.is_empty() {
        return;
    }
    message.subject_hash = crate::bytes::hash(section.path.as_bytes());
    if message.wants_text {
        let (path, query) = section.path.split_once('?').unwrap_or((&section.path, ""));
        message.row.uri_path.set(path);
        if !query.is_empty() {
            message.row.uri_query.set(query);
        }
    }
}

/// The preface, or a server's SETTINGS, are telling.
fn probe(bytes: &[u8]) -> Likely {
    if bytes.starts_with(PREFACE) {
        return Likely::Yes;
    }
    match Header::read(bytes) {
        Some(header) if header.kind == SETTINGS && header.is_plausible() && header.flags == 0 && header.length <= 120 => {
            let settings = bytes.get(HEADER..).unwrap_or(&[]).chunks_exact(6).take(header.length / 6);
            let are_known = settings.into_iter().all(|setting| matches!(setting, [0, 1..=16, ..]));
            if are_known && bytes.len() >= HEADER + header.length {
                Likely::Yes
            } else {
                Likely::No
            }
        }
        _ => Likely::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(http: &mut Http2, bytes: &[u8], from: Side) -> (Step, Message) {
        let mut message = Message { wants_text: true, ..Message::default() };
        let step = http.next(Input::whole(bytes), from, &mut message);
        (step, message)
    }

    fn frame(kind: u8, flags: u8, stream_id: u32, content: &[u8]) -> Vec<u8> {
        let mut frame = u32::try_from(content.len()).unwrap_or(0).to_be_bytes().get(1..).unwrap_or(&[]).to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream_id.to_be_bytes());
        frame.extend_from_slice(content);
        frame
    }

    /// RFC 7541 C.4.1 and C.4.2: two requests with Huffman coding, the second with the first one's dynamic table.
    const FIRST: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
    const SECOND: &[u8] = &[0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf];

    #[test]
    fn field_blocks_are_counted_before_and_after_compression() {
        let mut http = Http2::default();

        let (_, first) = decode(&mut http, &frame(1, 0x05, 1, FIRST), Side::Client);
        let (_, second) = decode(&mut http, &frame(1, 0x05, 3, SECOND), Side::Client);

        // :method GET, :scheme http, :path /, :authority www.example.com; then cache-control no-cache too
        let names_and_values = 7 + 3 + 7 + 4 + 5 + 1 + 10 + 15;
        assert_eq!(
            (Some(names_and_values), 17, 9, "GET"),
            (first.field_section_bytes, first.option_bytes, first.header_bytes, first.variant)
        );
        assert_eq!((Some(names_and_values + 13 + 8), 12), (second.field_section_bytes, second.option_bytes));
        assert_eq!(Some("/"), first.uri_path.get());
    }

    #[test]
    fn padding_is_header_and_content_is_payload() {
        let (step, data) = decode(&mut Http2::default(), &frame(0, 0x09, 1, b"\x03Hi!\0\0\0"), Side::Server);

        assert_eq!(Step::Message { len: 16 }, step);
        assert_eq!((3, 13, true), (data.payload_bytes, data.header_bytes, data.facts.is_end_of_stream));
    }

    #[test]
    fn a_lost_field_block_ends_what_is_known_of_the_next() {
        let mut http = Http2::default();
        let whole = frame(1, 0x05, 1, FIRST);
        let mut message = Message::default();

        let step = http.next(Input { bytes: whole.get(..15).unwrap_or(&[]), wire_bytes: whole.len() }, Side::Client, &mut message);
        let (_, second) = decode(&mut http, &frame(1, 0x05, 3, SECOND), Side::Client);

        assert_eq!(Step::Message { len: whole.len() }, step);
        assert_eq!((None, 12), (second.field_section_bytes, second.option_bytes));
    }

    #[test]
    fn the_preface_and_settings_are_known() {
        assert_eq!(Likely::Yes, probe(PREFACE));
        assert_eq!(Likely::Yes, probe(&frame(4, 0, 0, &[0, 3, 0, 0, 0, 100])));
        assert_eq!(Likely::No, probe(b"\x10\x0c\0\x04MQTT\x05\x02\0<\0\0\0"));
    }
}
