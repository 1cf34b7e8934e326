//! Decodes bytes that come from no capture: for the standards' examples, and for those who hold a message in their hands.

use crate::message::{Message, Side};
use crate::packet::Headers;
use crate::protocols::framing::{datagram, Cutter, Half, Receiver, Remainder};
use crate::protocols::{by_row, Carrier, Decoding};
use crate::schema::messages::Row;
use crate::span::Origin;

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    unassigned_bytes: u64,
}

impl Receiver for Rows {
    fn message(&mut self, message: &mut Message, from: Side, _: &[u8]) {
        message.row.direction = from.direction();
        self.rows.push(message.row.clone());
    }

    fn unassigned(&mut self, remainder: &Remainder, _: Side) {
        self.unassigned_bytes += remainder.bytes;
    }
}

/// The messages in `bytes`, a datagram or the start of a stream, and how many bytes at the end are no whole message. None where there is no
/// such protocol (by its `-d` name).
#[must_use]
pub fn decode(protocol: &str, bytes: &[u8], from: Side, decoding: &Decoding) -> Option<(Vec<Row>, u64)> {
    let protocol = by_row(protocol)?;
    let total = u32::try_from(bytes.len()).ok()?;
    let (file, frame, time_ns) = (0, 1, 0);
    let headers = Headers::default();
    let origin =
        Origin { frame, frame_first: frame, file, time_ns, time_first_ns: time_ns, headers, payload_bytes: total, ..Origin::default() };
    let piece = origin.whole();
    let mut decoder = (protocol.decoder)(decoding);
    let mut message = Message { wants_text: true, ..Message::default() };
    let now = (frame, time_ns);
    let mut cutter = Cutter {
        decoder: &mut decoder,
        message: &mut message,
        from,
        now,
        is_behind_gap: false,
        keep_bytes: bytes.len(),
        wants_frames: false,
        earlier_frames: &[],
    };
    let mut rows = Rows::default();
    match protocol.carrier {
        Carrier::Datagram => datagram(&mut cutter, piece, bytes, &mut rows),
        Carrier::Stream => {
            let mut half = Half::default();
            half.chunk(&mut cutter, piece, bytes, &mut rows);
            half.finish(from, &mut rows);
        }
    }
    for row in &mut rows.rows {
        row.protocol = protocol.name;
    }
    Some((rows.rows, rows.unassigned_bytes))
}
