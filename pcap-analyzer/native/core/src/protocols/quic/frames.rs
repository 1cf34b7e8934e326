//! The frames of QUIC's opened packets (RFC 9000 §19, RFC 9221), and HTTP/3 (RFC 9114) in its streams.
//!
//! One message is one frame. Byte columns: a frame's own bytes are header; of STREAM frames that carry HTTP/3, its frame headers and stream types are
//! header too, field sections as QPACK (RFC 9204) has compressed them are option, DATA is payload. Of an application of its own all that a stream or a
//! DATAGRAM frame carries is payload. Bytes that come again are opaque, and those that come early as far as `stream.rs` says.

use super::stream::{self, Arrival, Half};
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
const TYPES: [(u64, u64, &str, &[Field]); 20] = [
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
    (0xaf, 0xaf, "ACK_FREQUENCY", &[Int, Int, Int, Int]),
    (0x1f, 0x1f, "IMMEDIATE_ACK", &[]),
];
const ACK: u64 = 0x02;
const ACK_ECN: u64 = 0x03;
const DATAGRAM: u64 = 0x30;
const DATAGRAM_WITH_LENGTH: u64 = 0x31;

/// Most bytes of a connection that are kept because they came before others.
const MOST_EARLY: usize = 1 << 20;

#[derive(Debug)]
struct Frames {
    halves: [FxHashMap<u64, Half>; 2],
    /// Whether the streams carry HTTP/3, once one has told.
    is_http3: Option<bool>,
    /// Bytes that may still be kept.
    room: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Self { halves: Default::default(), is_http3: None, room: MOST_EARLY }
    }
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
            DATAGRAM | DATAGRAM_WITH_LENGTH => datagram(&mut cursor, kind, message)?,
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
        self.take(&Arrival { stream_id, offset, data, start, is_last: kind & 0x01 != 0 }, from, message);
        Ok(cursor.offset())
    }

    fn take(&mut self, arrival: &Arrival<'_>, from: Side, message: &mut Message) {
        if self.is_http3.is_none() && arrival.offset == 0 {
            self.is_http3 = stream::is_http3(arrival.stream_id, arrival.data);
        }
        let is_http3 = self.is_http3.unwrap_or(true);
        let begin = if is_http3 { Half::default } else { Half::of_application };
        if let Some(halves) = self.halves.get_mut(from.index()) {
            halves.entry(arrival.stream_id).or_insert_with(begin).take(arrival, &mut self.room, message);
        }
        if is_http3 {
            message.other_protocol = Some("http3");
            message.facts.version = Some("HTTP/3");
        } else {
            message.facts.is_opening = true;
        }
    }
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

/// RFC 9221 §4: without a length, to the packet's end.
fn datagram(cursor: &mut Cursor<'_>, kind: u64, message: &mut Message) -> Result<&'static str, Short> {
    let length = if kind == DATAGRAM { None } else { Some(usize::try_from(varint(cursor)?).unwrap_or(usize::MAX)) };
    let start = cursor.offset();
    let data = cursor.take(length.unwrap_or(cursor.rest().len()))?;
    message.row.payload_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    message.payload_range = start..cursor.offset();
    message.facts.is_opening = true;
    Ok("DATAGRAM")
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

    /// A STREAM frame with offset and length (RFC 9000 §19.8), ended where `is_last`.
    fn stream(stream_id: u8, offset: u8, data: &[u8], is_last: bool) -> Vec<u8> {
        [&[0x0e | u8::from(is_last), stream_id, offset, data.len() as u8][..], data].concat()
    }

    /// Header, option, payload and opaque bytes of each frame, whether it came again and whether it ends its stream.
    fn parts(frames: &[Vec<u8>], from: Side) -> Vec<([u32; 4], bool, bool)> {
        let mut decoder = Frames::default();
        let each = frames.iter().map(|bytes| {
            let (step, row) = decode(&mut decoder, bytes, from);
            assert_eq!(Step::Message { len: bytes.len() }, step);
            let parts = [row.header_bytes, row.option_bytes, row.payload_bytes, row.opaque_bytes];
            (parts, row.is_retransmission, row.facts.is_end_of_stream)
        });
        each.collect()
    }

    /// HEADERS of 2 bytes, DATA of 6: HTTP/3's own headers are 4 of the 12 bytes.
    const RESPONSE: &[u8] = &[1, 2, 0xaa, 0xbb, 0, 6, b'a', b'b', b'c', b'd', b'e', b'f'];

    #[test]
    fn data_behind_a_hole_in_data_is_data_and_so_is_what_fills_it() {
        let [start, hole, end] = [&RESPONSE[..8], &RESPONSE[8..10], &RESPONSE[10..]];
        let frames = [stream(0, 0, start, false), stream(0, 10, end, true), stream(0, 8, hole, false), stream(0, 8, hole, false)];

        let expected =
            [([8, 2, 2, 0], false, false), ([4, 0, 2, 0], false, false), ([4, 0, 2, 0], false, true), ([4, 0, 0, 2], true, true)];
        assert_eq!(expected.as_slice(), parts(&frames, Side::Server));
    }

    #[test]
    fn frames_are_found_again_behind_a_hole_that_was_filled() {
        let more = [0, 3, b'x', b'y', b'z'];
        let frames = [stream(0, 5, &RESPONSE[5..], false), stream(0, 0, &RESPONSE[..5], false), stream(0, 12, &more, true)];
        assert!(decode(&mut Frames::default(), &frames[0], Side::Server).1.facts.is_ahead);

        let expected = [([4, 0, 0, 7], false, false), ([7, 2, 0, 0], false, false), ([6, 0, 3, 0], false, true)];
        assert_eq!(expected.as_slice(), parts(&frames, Side::Server));
    }

    #[test]
    fn what_comes_again_with_more_brings_the_rest() {
        let frames = [stream(0, 0, &RESPONSE[..8], false), stream(0, 6, &RESPONSE[6..], true)];

        assert_eq!([([8, 2, 2, 0], false, false), ([4, 0, 4, 2], false, true)].as_slice(), parts(&frames, Side::Server));
    }

    /// An MQTT CONNECT (MQTT 5 §3.1) is no HEADERS frame: stream and datagrams are the application's.
    #[test]
    fn streams_of_other_applications_are_payload() {
        let mut frames = Frames::default();
        let (_, connect) = decode(&mut frames, &stream(0, 0, &[0x10, 0x02, 1, 2], false), Side::Client);
        let (_, connack) = decode(&mut frames, &stream(0, 0, &[0x01, 0x02, 0, 0], false), Side::Server);
        let (step, datagram) = decode(&mut frames, &[0x31, 0x02, 9, 9, 0x01], Side::Client);

        for message in [&connect, &connack] {
            assert_eq!((4, 4, None, None), (message.header_bytes, message.payload_bytes, message.other_protocol, message.facts.version));
        }
        assert_eq!((Step::Message { len: 4 }, 2, 2), (step, datagram.header_bytes, datagram.payload_bytes));
    }

    #[test]
    fn the_first_bytes_of_a_stream_tell_http3() {
        let told: [(u64, &[u8], Option<bool>); 7] = [
            (0, &[0x01, 0x10], Some(true)),
            (0, &[0x00, 0x2b], Some(false)),
            (0, b"GET /", Some(false)),
            (2, &[0x00, 0x04, 0x00], Some(true)),
            (2, &[0x02], None),
            (6, &[0x21, 0x00], None),
            (1, &[0x01], Some(false)),
        ];
        for (stream_id, bytes, expected) in told {
            assert_eq!(expected, stream::is_http3(stream_id, bytes), "{stream_id} {bytes:?}");
        }
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
