//! The frames of QUIC's opened packets (RFC 9000 §19, RFC 9221), and HTTP/3 (RFC 9114) in its streams.
//!
//! One message is one frame. Byte columns: a frame's own bytes are header; of STREAM frames that carry HTTP/3, its frame headers and stream types are
//! header too, field sections as QPACK (RFC 9204) has compressed them are option, DATA is payload. A stream's bytes that come out of order, or again,
//! are opaque: where HTTP/3's frames begin in them is not known.

use super::varint;
use crate::bytes::{Cursor, Short};
use crate::message::{Message, Side};
use crate::protocols::http2::Streams;
use crate::protocols::{Carrier, Decoder, Input, Likely, Malformed, Protocol, Step};
use rustc_hash::FxHashMap;

/// QUIC's frames.
pub const QUIC_FRAMES: Protocol = Protocol {
    name: "quic",
    decode_as: "quic_frames",
    standards: &["RFC 9000", "RFC 9114", "RFC 9204", "RFC 9221"],
    carrier: Carrier::Datagram,
    is_security: false,
    carries: None,
    ports: &[],
    probe: |_| Likely::No,
    connection_id: None,
    decoder: |_| Box::<Frames>::default(),
    pairing: || Box::<Streams>::default(),
    wireshark: &[("quic.frame_type", "kind"), ("quic.stream.stream_id", "stream_id")],
};

/// What stands behind a frame's type (RFC 9000 §19).
#[derive(Debug, Clone, Copy)]
enum Field {
    /// A variable-length integer.
    Int,
    /// So many bytes.
    Bytes(usize),
    /// A length, then so many bytes.
    Data,
    /// A length of one byte, then so many bytes.
    ShortData,
}

use Field::{Bytes, Data, Int, ShortData};

/// First and last type, name, fields. ACK's ranges and STREAM's data are read by themselves.
const TYPES: [(u64, u64, &str, &[Field]); 21] = [
    (0x01, 0x01, "PING", &[]),
    (0x04, 0x04, "RESET_STREAM", &[Int, Int, Int]),
    (0x05, 0x05, "STOP_SENDING", &[Int, Int]),
    (0x06, 0x06, "CRYPTO", &[Int, Data]),
    (0x07, 0x07, "NEW_TOKEN", &[Data]),
    (0x10, 0x10, "MAX_DATA", &[Int]),
    (0x11, 0x11, "MAX_STREAM_DATA", &[Int, Int]),
    (0x12, 0x13, "MAX_STREAMS", &[Int]),
    (0x14, 0x14, "DATA_BLOCKED", &[Int]),
    (0x15, 0x15, "STREAM_DATA_BLOCKED", &[Int, Int]),
    (0x16, 0x17, "STREAMS_BLOCKED", &[Int]),
    (0x18, 0x18, "NEW_CONNECTION_ID", &[Int, Int, ShortData, Bytes(16)]),
    (0x19, 0x19, "RETIRE_CONNECTION_ID", &[Int]),
    (0x1a, 0x1a, "PATH_CHALLENGE", &[Bytes(8)]),
    (0x1b, 0x1b, "PATH_RESPONSE", &[Bytes(8)]),
    (0x1c, 0x1c, "CONNECTION_CLOSE", &[Int, Int, Data]),
    (0x1d, 0x1d, "CONNECTION_CLOSE", &[Int, Data]),
    (0x1e, 0x1e, "HANDSHAKE_DONE", &[]),
    (0x31, 0x31, "DATAGRAM", &[Data]),
    (0xaf, 0xaf, "ACK_FREQUENCY", &[Int, Int, Int, Int]),
    (0x1f, 0x1f, "IMMEDIATE_ACK", &[]),
];
const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;
const DATAGRAM: u64 = 0x30;

/// RFC 9114 §7.2
const H3_TYPES: [(u64, &str); 7] =
    [(0, "DATA"), (1, "HEADERS"), (3, "CANCEL_PUSH"), (4, "SETTINGS"), (5, "PUSH_PROMISE"), (7, "GOAWAY"), (0xd, "MAX_PUSH_ID")];
/// RFC 9114 §6.2, RFC 9204 §4.2
const H3_STREAMS: [(u64, &str); 4] = [(0, "control"), (1, "push"), (2, "QPACK encoder"), (3, "QPACK decoder")];

/// One side of a stream, as far as it has come in order.
#[derive(Debug, Default)]
struct Half {
    offset: u64,
    /// Of a unidirectional stream, once it has told.
    stream_type: Option<u64>,
    /// Type of the HTTP/3 frame that the next byte belongs to, and its bytes that are still to come.
    frame_type: u64,
    left: u64,
    /// The start of a frame's header that a STREAM frame has cut.
    begun: Vec<u8>,
    /// Whether bytes are missing, so that frames are not found any more.
    is_lost: bool,
}

#[derive(Debug, Default)]
struct Frames {
    halves: [FxHashMap<u64, Half>; 2],
}

impl Decoder for Frames {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        match self.frame(input, from, message) {
            Ok(len) => {
                let rest = u32::try_from(len).unwrap_or(u32::MAX);
                let row = &mut message.row;
                row.header_bytes = rest - (row.option_bytes + row.payload_bytes + row.opaque_bytes).min(rest);
                Step::Message { len }
            }
            Err(short) => {
                message.row.clear();
                let why = Malformed { offset: short.offset, field: "frame", section: "RFC 9000 §19" };
                Step::Malformed { len: input.wire_bytes, why }
            }
        }
    }
}

impl Frames {
    /// Reads a frame and returns its length.
    fn frame(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Result<usize, Short> {
        let mut cursor = Cursor::new(input.bytes);
        let kind = varint(&mut cursor)?;
        message.row.kind = match kind {
            // a type of zero may be written longer than it has to be
            0 => return Ok(padding(input, message).max(cursor.offset())),
            ACK | ACK_ECN => ack(&mut cursor, kind)?,
            0x08..=0x0f => return self.stream(&mut cursor, kind, from, message),
            DATAGRAM => datagram(&mut cursor, message),
            _ => fields(&mut cursor, kind)?,
        };
        Ok(cursor.offset())
    }

    /// RFC 9000 §19.8
    fn stream(&mut self, cursor: &mut Cursor<'_>, kind: u64, from: Side, message: &mut Message) -> Result<usize, Short> {
        let stream_id = varint(cursor)?;
        let offset = if kind & 0x04 == 0 { 0 } else { varint(cursor)? };
        let length = if kind & 0x02 == 0 { cursor.rest().len() } else { usize::try_from(varint(cursor)?).unwrap_or(usize::MAX) };
        let start = cursor.offset();
        let data = cursor.take(length)?;
        message.row.kind = "STREAM";
        message.row.stream_id = Some(stream_id);
        message.facts.is_end_of_stream = kind & 0x01 != 0;
        let halves = self.halves.get_mut(from.index());
        if let Some(half) = halves.map(|halves| halves.entry(stream_id).or_default()) {
            half.take(stream_id, offset, data, start, message);
        }
        Ok(cursor.offset())
    }
}

impl Half {
    fn take(&mut self, stream_id: u64, offset: u64, data: &[u8], start: usize, message: &mut Message) {
        let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if offset < self.offset {
            message.row.opaque_bytes = len;
            message.row.is_retransmission = true;
            return;
        }
        self.is_lost |= offset > self.offset;
        self.offset = offset + u64::from(len);
        if self.is_lost {
            message.row.opaque_bytes = len;
            return;
        }
        let mut at = 0;
        let is_one_way = stream_id & 0x02 != 0;
        if is_one_way && self.stream_type.is_none() {
            let mut cursor = Cursor::new(data);
            self.stream_type = varint(&mut cursor).ok();
            at = cursor.offset();
        }
        let known = H3_STREAMS.iter().find(|(number, _)| Some(*number) == self.stream_type).map(|(_, name)| *name);
        match (is_one_way, known) {
            (true, Some("control")) | (false, _) => self.frames(data, at, start, message),
            (true, known) => message.row.variant = known.unwrap_or(""),
        }
        message.other_protocol = Some("http3");
        message.facts.version = Some("HTTP/3");
    }

    /// RFC 9114 §7.1
    fn frames(&mut self, data: &[u8], mut at: usize, start: usize, message: &mut Message) {
        while at < data.len() {
            if self.left == 0 {
                let Some(next) = self.header(data, at) else { return };
                at = next;
                show_frame(self.frame_type, message);
                continue;
            }
            let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len() - at);
            let bytes = u32::try_from(here).unwrap_or(u32::MAX);
            match self.frame_type {
                0 => {
                    message.row.payload_bytes += bytes;
                    message.payload_range = start + at..start + at + here;
                }
                1 | 5 => message.row.option_bytes += bytes,
                _ => {}
            }
            if message.row.variant.is_empty() {
                show_frame(self.frame_type, message);
            }
            at += here;
            self.left -= here as u64;
        }
    }

    /// Reads a frame's header; none where the rest of it comes with the next STREAM frame.
    fn header(&mut self, data: &[u8], at: usize) -> Option<usize> {
        let begun = self.begun.len();
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(data.get(at..).unwrap_or(&[]).get(..16.min(data.len() - at)).unwrap_or(&[]));
        let mut cursor = Cursor::new(&bytes);
        if let (Ok(frame_type), Ok(left)) = (varint(&mut cursor), varint(&mut cursor)) {
            (self.frame_type, self.left) = (frame_type, left);
            return Some(at + cursor.offset() - begun.min(cursor.offset()));
        }
        self.begun = bytes;
        None
    }
}

/// The first frame names the message, unless data or a field section follow.
fn show_frame(frame_type: u64, message: &mut Message) {
    let name = H3_TYPES.iter().find(|(number, _)| *number == frame_type).map_or("", |(_, name)| *name);
    if message.row.variant.is_empty() || name == "DATA" {
        message.row.variant = name;
    }
    message.facts.is_opening |= name == "HEADERS";
}

/// A run of PADDING frames.
fn padding(input: Input<'_>, message: &mut Message) -> usize {
    message.row.kind = "PADDING";
    input.bytes.iter().take_while(|&&byte| byte == 0).count()
}

/// RFC 9000 §19.3
fn ack(cursor: &mut Cursor<'_>, kind: u64) -> Result<&'static str, Short> {
    varint(cursor)?;
    varint(cursor)?;
    let ranges = varint(cursor)?;
    varint(cursor)?;
    for _ in 0..ranges {
        varint(cursor)?;
        varint(cursor)?;
    }
    for _ in 0..if kind == ACK_ECN { 3 } else { 0 } {
        varint(cursor)?;
    }
    Ok("ACK")
}

/// RFC 9221 §4, without a length: to the packet's end.
fn datagram(cursor: &mut Cursor<'_>, message: &mut Message) -> &'static str {
    let bytes = cursor.rest().len();
    message.row.payload_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let _ = cursor.take(bytes);
    "DATAGRAM"
}

fn fields(cursor: &mut Cursor<'_>, kind: u64) -> Result<&'static str, Short> {
    let unknown = Short { offset: 0, needed: 1 };
    let (_, _, name, fields) = TYPES.iter().find(|(first, last, ..)| (*first..=*last).contains(&kind)).ok_or(unknown)?;
    for field in *fields {
        match field {
            Int => drop(varint(cursor)?),
            Bytes(count) => drop(cursor.take(*count)?),
            Data => {
                let length = varint(cursor)?;
                cursor.take(usize::try_from(length).unwrap_or(usize::MAX))?;
            }
            ShortData => {
                let length = cursor.u8()?;
                cursor.take(length.into())?;
            }
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(frames: &mut Frames, bytes: &[u8], from: Side) -> (Step, Message) {
        let mut message = Message::default();
        let step = frames.next(Input::whole(bytes), from, &mut message);
        (step, message)
    }

    #[test]
    fn a_response_over_two_stream_frames_is_divided() {
        let mut frames = Frames::default();
        // STREAM with FIN bit off, LEN on, stream 0: HEADERS of 3 bytes, DATA of 5 bytes of which 2 are here
        let first = [0x0a, 0x00, 0x09, 0x01, 0x03, 1, 2, 3, 0x00, 0x05, b'H', b'i'];
        // with OFF, LEN and FIN: the rest
        let second = [0x0f, 0x00, 0x09, 0x03, b'!', b'0', b'1'];

        let (step, head) = decode(&mut frames, &first, Side::Server);
        let (_, rest) = decode(&mut frames, &second, Side::Server);

        assert_eq!(Step::Message { len: 12 }, step);
        assert_eq!((7, 3, 2, "DATA"), (head.header_bytes, head.option_bytes, head.payload_bytes, head.variant));
        assert_eq!((4, 0, 3, true), (rest.header_bytes, rest.option_bytes, rest.payload_bytes, rest.facts.is_end_of_stream));
    }

    #[test]
    fn what_comes_again_or_behind_a_gap_is_opaque() {
        let mut frames = Frames::default();
        let (_, _) = decode(&mut frames, &[0x0a, 0x00, 0x02, 0x00, 0x05], Side::Client);
        let (_, again) = decode(&mut frames, &[0x0a, 0x00, 0x02, 0x00, 0x05], Side::Client);
        let (_, later) = decode(&mut frames, &[0x0e, 0x00, 0x04, 0x01, b'0'], Side::Client);

        assert_eq!((2, true), (again.opaque_bytes, again.is_retransmission));
        assert_eq!((1, 0), (later.opaque_bytes, later.payload_bytes));
    }

    #[test]
    fn acknowledgements_and_padding_have_their_lengths() {
        let (ack, _) = decode(&mut Frames::default(), &[0x02, 0x00, 0x41, 0x0f, 0x01, 0x00, 0x02, 0x03, 0x01], Side::Client);
        let (padding, _) = decode(&mut Frames::default(), &[0, 0, 0, 1], Side::Client);
        let (long, _) = decode(&mut Frames::default(), &[0x40, 0, 0, 0], Side::Client);

        assert_eq!(Step::Message { len: 8 }, ack);
        assert_eq!(Step::Message { len: 3 }, padding);
        assert_eq!(Step::Message { len: 2 }, long);
    }
}
