//! One side of a QUIC stream (RFC 9000 §2.2), whose bytes may come out of order or again, and HTTP/3's frames (RFC 9114 §7.1) in it.
//!
//! Where a frame of HTTP/3 begins is known only behind the one before. So bytes behind a hole are counted for what they are where the hole lies within
//! one frame, as a rule DATA; where a frame's header may be in it, they are opaque, and are kept until it is filled to find the frames behind them.

use super::varint;
use crate::bytes::{count, Cursor};
use crate::message::Message;
use std::collections::BTreeMap;

const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;
const PUSH_PROMISE: u64 = 5;
/// Bytes of an application of its own, for which one frame stands that never ends; as those of stream types without frames.
const CONTENT: u64 = u64::MAX;
const UNFRAMED: u64 = u64::MAX - 1;

/// RFC 9114 §7.2
const H3_TYPES: [(u64, &str); 7] = [
    (DATA, "DATA"),
    (HEADERS, "HEADERS"),
    (3, "CANCEL_PUSH"),
    (SETTINGS, "SETTINGS"),
    (PUSH_PROMISE, "PUSH_PROMISE"),
    (7, "GOAWAY"),
    (0xd, "MAX_PUSH_ID"),
];
/// RFC 9114 §6.2, RFC 9204 §4.2
const H3_STREAMS: [(u64, &str); 4] = [(CONTROL, "control"), (1, "push"), (2, "QPACK encoder"), (3, "QPACK decoder")];
const CONTROL: u64 = 0;

/// Most holes of a stream that are waited for.
const MOST_HOLES: usize = 1024;

/// Whether a connection speaks HTTP/3, as far as the first bytes of one of its streams tell: requests begin with HEADERS (RFC 9114 §4.1), the control
/// stream with SETTINGS (§6.2.1), and servers open no stream for both ways (§6.1).
pub fn is_http3(stream_id: u64, first_bytes: &[u8]) -> Option<bool> {
    let mut cursor = Cursor::new(first_bytes);
    let first = varint(&mut cursor).ok()?;
    let is_reserved = first >= 0x21 && (first - 0x21) % 0x1f == 0;
    match (stream_id & 3, first) {
        _ if is_reserved => None,
        (0, _) => Some(first == HEADERS),
        (1, _) => Some(false),
        (_, CONTROL) => varint(&mut cursor).ok().map(|second| second == SETTINGS),
        _ if H3_STREAMS.iter().any(|(number, _)| *number == first) => None,
        _ => Some(false),
    }
}

/// A STREAM frame's data.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    pub stream_id: u64,
    pub offset: u64,
    pub data: &'a [u8],
    /// Where the data stands in the decoder's input.
    pub start: usize,
    pub is_last: bool,
}

/// Bytes that have not come, all of them of one frame.
#[derive(Debug, Clone, Copy)]
struct Hole {
    from: u64,
    to: u64,
    frame_type: u64,
}

/// One side of a stream.
#[derive(Debug, Default)]
pub struct Half {
    /// Up to here it is known what its bytes are.
    offset: u64,
    /// Of a unidirectional stream, once it has told.
    stream_type: Option<u64>,
    /// Type of the HTTP/3 frame that the next byte belongs to, and its bytes that are still to come.
    frame_type: u64,
    left: u64,
    /// The start of a frame's header that a STREAM frame has cut.
    begun: Vec<u8>,
    holes: Vec<Hole>,
    /// What came behind a hole that may hold a frame's header.
    early: BTreeMap<u64, Vec<u8>>,
    /// Whether too much came early to be kept, so that frames are not found any more.
    is_lost: bool,
    /// The stream's length, once it is told.
    end: Option<u64>,
}

impl Half {
    /// Bytes of an application of its own.
    pub fn of_application() -> Self {
        Self { frame_type: CONTENT, left: u64::MAX, stream_type: Some(CONTENT), ..Self::default() }
    }

    /// Takes a STREAM frame's data and counts it. `room`: bytes that may still be kept.
    pub fn take(&mut self, arrival: &Arrival<'_>, room: &mut usize, message: &mut Message) {
        let Arrival { offset, data, start, .. } = *arrival;
        if arrival.is_last {
            self.end = Some(offset.saturating_add(data.len() as u64));
        }
        let behind = usize::try_from(self.offset.saturating_sub(offset)).unwrap_or(usize::MAX).min(data.len());
        let is_filling = self.fill(offset, behind, start, message);
        if behind == data.len() {
            message.row.is_retransmission = behind > 0 && !is_filling;
        } else if self.reach(offset) {
            self.cut(arrival, behind, message);
            self.catch_up(arrival.stream_id, room);
        } else {
            message.row.opaque_bytes += count(data.len());
            message.facts.is_ahead = true;
            self.keep(offset, data, room);
        }
        message.facts.is_end_of_stream = self.end == Some(self.offset) && self.holes.is_empty();
    }

    /// Counts bytes that lie before those that are known: what fills holes as what was missing there, all else as opaque. Whether any fills one.
    fn fill(&mut self, offset: u64, bytes: usize, start: usize, message: &mut Message) -> bool {
        if bytes == 0 {
            return false;
        }
        let to = offset.saturating_add(bytes as u64);
        let mut filled = 0;
        let mut left = Vec::new();
        for hole in self.holes.drain(..) {
            let (first, last) = (hole.from.max(offset), hole.to.min(to));
            if first >= last {
                left.push(hole);
                continue;
            }
            let here = usize::try_from(last - first).unwrap_or(usize::MAX);
            count_as(hole.frame_type, here, start + usize::try_from(first - offset).unwrap_or(0), message);
            filled += here;
            let rests = [Hole { to: first, ..hole }, Hole { from: last, ..hole }];
            left.extend(rests.into_iter().filter(|rest| rest.from < rest.to));
        }
        self.holes = left;
        message.row.opaque_bytes += count(bytes.saturating_sub(filled));
        filled > 0
    }

    /// Whether it is known what the byte at `offset` is: nothing is missing before it, or only bytes of the frame that was last begun.
    fn reach(&mut self, offset: u64) -> bool {
        let missing = offset.saturating_sub(self.offset);
        if self.is_lost || missing > self.left {
            return missing == 0 && !self.is_lost;
        }
        if missing > 0 {
            if self.holes.len() == MOST_HOLES {
                self.holes.remove(0);
            }
            self.holes.push(Hole { from: self.offset, to: offset, frame_type: self.frame_type });
            self.left -= missing;
            self.offset = offset;
        }
        true
    }

    /// Counts the data from `at` on, which is the next that is not known.
    fn cut(&mut self, arrival: &Arrival<'_>, mut at: usize, message: &mut Message) {
        let Arrival { stream_id, data, start, .. } = *arrival;
        self.offset = self.offset.saturating_add((data.len() - at) as u64);
        if stream_id & 0x02 != 0 && self.stream_type.is_none() {
            let mut cursor = Cursor::new(data.get(at..).unwrap_or(&[]));
            self.stream_type = varint(&mut cursor).ok();
            at += cursor.offset();
            if self.stream_type.is_some_and(|stream_type| stream_type != CONTROL) {
                (self.frame_type, self.left) = (UNFRAMED, u64::MAX);
            }
        }
        let name = H3_STREAMS.iter().find(|(number, _)| Some(*number) == self.stream_type).map(|(_, name)| *name);
        if let Some(name) = name.filter(|_| self.frame_type == UNFRAMED) {
            message.row.variant = name;
        }
        self.frames(data, at, start, message);
    }

    /// Keeps what came early.
    fn keep(&mut self, offset: u64, data: &[u8], room: &mut usize) {
        if data.len() > *room || self.is_lost {
            self.is_lost = true;
            *room += self.early.values().map(Vec::len).sum::<usize>();
            return self.early.clear();
        }
        *room -= data.len();
        let before = self.early.insert(offset, data.to_vec());
        *room += before.map_or(0, |before| before.len());
    }

    /// Finds the frames in what came early and is next now; it has been counted.
    fn catch_up(&mut self, stream_id: u64, room: &mut usize) {
        while let Some((&offset, _)) = self.early.first_key_value() {
            if !self.reach(offset) {
                return;
            }
            let data = self.early.remove(&offset).unwrap_or_default();
            *room += data.len();
            let behind = usize::try_from(self.offset - offset).unwrap_or(usize::MAX).min(data.len());
            let arrival = Arrival { stream_id, offset, data: &data, start: 0, is_last: false };
            self.cut(&arrival, behind, &mut Message::default());
        }
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
            count_as(self.frame_type, here, start + at, message);
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

/// Counts bytes of a frame of this type, which stand at `start` of the decoder's input. Those that are counted as nothing are header.
fn count_as(frame_type: u64, bytes: usize, start: usize, message: &mut Message) {
    match frame_type {
        DATA | CONTENT => {
            message.row.payload_bytes += count(bytes);
            message.payload_range = start..start + bytes;
        }
        HEADERS | PUSH_PROMISE => message.row.option_bytes += count(bytes),
        _ => {}
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
