//! One direction of a TCP connection (RFC 9293 §3.4): segments in, bytes in order out, with what was sent again and what is missing.

use crate::span::{Origin, Piece};
use std::collections::VecDeque;

/// What the direction hands on, in stream order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// New bytes, next in order. `bytes` may be shorter than the piece (snap length).
    Chunk(Piece<'a>, &'a [u8]),
    /// Bytes that were delivered before: a retransmission.
    Repeated(Piece<'a>),
    /// The last byte once more, by which a side asks whether the peer is still there (RFC 9293 §3.8.4).
    KeepAlive(Piece<'a>),
    /// So many bytes of the stream are not in the capture; the piece is the one behind them, which comes next.
    Gap(u64, Piece<'a>),
}

/// A segment that waits for the bytes before it.
#[derive(Debug)]
struct Held {
    sequence: u32,
    origin: Origin,
    from: u32,
    to: u32,
    bytes: Vec<u8>,
}

impl Held {
    /// What it takes in memory.
    const fn room(&self) -> usize {
        size_of::<Self>() + self.bytes.len()
    }
}

/// Puts one direction's segments in order. There may be many of these, of which few have a hole at a time: so what waits stands elsewhere.
#[derive(Debug, Default)]
pub struct Reassembly {
    next: u32,
    is_started: bool,
    waiting: Option<Box<Waiting>>,
    /// Where a probe of a closed window ends.
    probe_end: Option<u32>,
}

/// What waits behind a hole.
#[derive(Debug, Default)]
struct Waiting {
    /// In their order; at least one.
    held: VecDeque<Held>,
    /// What the held segments take, themselves and their bytes.
    bytes: usize,
    /// How many were held when it was last seen that the hole may still be filled: the peer asked for it, or one before it was filled.
    with_hope: usize,
    /// Acknowledgements beyond the hole.
    acknowledged: u8,
}

impl Waiting {
    /// Whether the hole is not waited for any longer, now that another segment is held.
    fn is_hopeless(&self, now_ns: i64) -> bool {
        let is_late = self.held.front().is_some_and(|first| now_ns.saturating_sub(first.origin.time_ns) > PATIENCE_NS);
        is_late && self.held.len() > self.with_hope + HELD_SEGMENTS || self.bytes > HELD_BYTES
    }

    /// Whether all bytes from `sequence` to `end` are held; `at` is the first segment that begins behind `sequence`.
    fn has(&self, at: usize, sequence: u32, end: u32) -> bool {
        let mut reached = sequence;
        for held in self.held.range(at.saturating_sub(1)..) {
            if distance(held.sequence, reached) > 0 || distance(end, reached) <= 0 {
                break;
            }
            let held_end = held.sequence.wrapping_add(held.to - held.from);
            reached = if distance(held_end, reached) > 0 { held_end } else { reached };
        }
        distance(end, reached) <= 0
    }

    /// Takes out the first segment, where it begins at `next` or before.
    fn pop(&mut self, next: u32) -> Option<Held> {
        if distance(self.held.front()?.sequence, next) > 0 {
            return None;
        }
        let held = self.held.pop_front()?;
        self.bytes -= held.room();
        (self.acknowledged, self.with_hope) = (0, self.held.len());
        Some(held)
    }
}

/// What tells that the peer has got what is missing here.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledged {
    /// Up to where it has got all.
    pub acknowledgment: u32,
    /// When it said so.
    pub time_ns: i64,
    /// Whether it said more: bytes that may answer those behind the hole.
    pub has_payload: bool,
}

/// Segments held without a sign that the hole may still be filled, before it is taken for a loss of the capture.
const HELD_SEGMENTS: usize = 512;
/// How long no sign needs to come: the peer's request takes a round trip, and a sender's timeout is a second or more (RFC 6298 §2.4).
const PATIENCE_NS: i64 = 2_000_000_000;
/// Bytes held at most: more than twice the receive window that Linux grants by itself (tcp_rmem).
const HELD_BYTES: usize = 16 * 1024 * 1024;
/// Acknowledgements beyond the hole that the peer sends before the hole is taken for a loss of the capture: it has got what we have not.
const ACKNOWLEDGEMENTS: u8 = 8;
/// Where an acknowledgement beyond the hole comes later than this behind a segment that waits, one is enough: so long no capture mixes up frames.
const CAPTURE_JITTER_NS: i64 = 1_000_000;

/// `a - b` of sequence numbers, by RFC 9293 §3.4 modulo 2³².
#[inline]
const fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b).cast_signed()
}

impl Reassembly {
    /// A SYN with this sequence number opens the direction.
    pub const fn open(&mut self, sequence: u32) {
        self.next = sequence.wrapping_add(1);
        self.is_started = true;
    }

    /// Whether a byte or SYN of the direction was seen.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.is_started
    }

    /// Whether segments wait for a hole to be filled.
    #[inline]
    #[must_use]
    pub const fn is_holding(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether a segment at `sequence` with `len` bytes would go on where the stream stands.
    #[inline]
    #[must_use]
    pub const fn is_next(&self, sequence: u32) -> bool {
        self.is_started && self.next == sequence
    }

    /// The byte at `sequence` is sent to learn whether the peer's window is still closed (RFC 9293 §3.8.6.1): where it comes again, nothing was lost.
    pub const fn probe(&mut self, sequence: u32) {
        self.probe_end = Some(sequence.wrapping_add(1));
    }

    /// Takes a segment with payload, or a FIN without, which tells where the stream ends. Returns whether it arrived out of order: before bytes that came
    /// earlier than it in the stream, or after them.
    #[inline]
    pub fn segment(&mut self, sequence: u32, piece: Piece<'_>, bytes: &[u8], deliver: &mut impl FnMut(Delivery<'_>)) -> bool {
        // a FIN has a sequence number of its own: one further on may stand a second FIN (some stacks send it again so)
        if piece.is_empty() && (!self.is_started || distance(sequence, self.next) <= 1) {
            return false;
        }
        if !self.is_started {
            self.next = sequence;
            self.is_started = true;
        }
        if distance(sequence, self.next) > 0 {
            let (waiting, is_behind) = self.hold(sequence, piece, bytes);
            if waiting.is_hopeless(piece.time_ns) {
                self.give_up(deliver);
            }
            return is_behind;
        }
        let fills = self.is_holding();
        let is_new = distance(sequence.wrapping_add(piece.len()), self.next) > 0;
        if fills {
            self.fill(sequence, piece, bytes, deliver);
        } else {
            self.pass(sequence, piece, bytes, deliver);
        }
        fills && is_new
    }

    /// Passes on a segment that begins before those that wait, and them: each byte with the segment that brought it first. What a sender sends again it may
    /// put together from several segments (RFC 9293 §3.8.1), some of which have arrived.
    fn fill(&mut self, sequence: u32, piece: Piece<'_>, bytes: &[u8], deliver: &mut impl FnMut(Delivery<'_>)) {
        let (mut sequence, mut piece, mut bytes) = (sequence, piece, bytes);
        while let Some(first) = self.waiting.as_ref().and_then(|waiting| waiting.held.front()).map(|held| held.sequence) {
            let ahead = first.wrapping_sub(sequence);
            if ahead >= piece.len() {
                break;
            }
            let (before, behind) = piece.split(ahead);
            let (head, tail) = bytes.split_at(bytes.len().min(ahead as usize));
            self.pass(sequence, before, head, deliver);
            self.release(deliver);
            (sequence, piece, bytes) = (first, behind, tail);
        }
        self.pass(sequence, piece, bytes, deliver);
        self.release(deliver);
    }

    /// Passes on a segment that begins at or before the next byte.
    #[inline]
    fn pass(&mut self, sequence: u32, piece: Piece<'_>, bytes: &[u8], deliver: &mut impl FnMut(Delivery<'_>)) {
        if piece.is_empty() {
            return;
        }
        let old = self.next.wrapping_sub(sequence);
        if old == 0 {
            self.next = self.next.wrapping_add(piece.len());
            deliver(Delivery::Chunk(piece, bytes));
            return;
        }
        let (repeated, new) = piece.split(old);
        let is_probe = old == 1 && (new.is_empty() || self.probe_end == Some(self.next));
        deliver(if is_probe { Delivery::KeepAlive(repeated) } else { Delivery::Repeated(repeated) });
        if !new.is_empty() {
            self.next = self.next.wrapping_add(new.len());
            deliver(Delivery::Chunk(new, bytes.get(old as usize..).unwrap_or(&[])));
        }
    }

    /// Holds a segment that begins behind a hole. Returns also whether it fills a part of one: it has new bytes, and later ones are held already.
    fn hold(&mut self, sequence: u32, piece: Piece<'_>, bytes: &[u8]) -> (&Waiting, bool) {
        let next = self.next;
        let ahead = distance(sequence, next);
        let waiting = self.waiting.get_or_insert_default();
        let at = waiting.held.partition_point(|held| distance(held.sequence, next) <= ahead);
        let is_behind = at < waiting.held.len() && !waiting.has(at, sequence, sequence.wrapping_add(piece.len()));
        let held = Held { sequence, origin: *piece.origin, from: piece.from(), to: piece.to(), bytes: bytes.to_vec() };
        waiting.bytes += held.room();
        waiting.held.insert(at, held);
        (waiting, is_behind)
    }

    /// Delivers the held segments that are now in order.
    fn release(&mut self, deliver: &mut impl FnMut(Delivery<'_>)) {
        while let Some(held) = self.waiting.as_mut().and_then(|waiting| waiting.pop(self.next)) {
            self.waiting.take_if(|waiting| waiting.held.is_empty());
            let Held { sequence, origin, from, to, bytes } = &held;
            self.pass(*sequence, origin.piece(*from, *to), bytes, deliver);
        }
    }

    /// The peer acknowledges bytes behind a hole: it was filled there, so the capture lacks it. Where it says no more than that, and says it at once, the
    /// capture may have mixed up frames, and the hole be filled here too.
    pub fn peer_acknowledges(&mut self, peer: &Acknowledged, deliver: &mut impl FnMut(Delivery<'_>)) {
        let Some(waiting) = &mut self.waiting else { return };
        let Some(first) = waiting.held.front() else { return };
        if distance(peer.acknowledgment, first.sequence) < 0 {
            waiting.with_hope = waiting.held.len();
            return;
        }
        waiting.acknowledged += 1;
        let is_late = peer.time_ns - first.origin.time_ns > CAPTURE_JITTER_NS;
        if peer.has_payload || is_late || waiting.acknowledged >= ACKNOWLEDGEMENTS {
            self.give_up(deliver);
        }
    }

    /// Takes the first hole for a loss: reports the gap and goes on behind it.
    pub fn give_up(&mut self, deliver: &mut impl FnMut(Delivery<'_>)) {
        let Some(first) = self.waiting.as_ref().and_then(|waiting| waiting.held.front()) else { return };
        let missing = first.sequence.wrapping_sub(self.next);
        self.next = first.sequence;
        deliver(Delivery::Gap(missing.into(), first.origin.piece(first.from, first.to)));
        self.release(deliver);
    }

    /// The stream ends: reports all gaps.
    pub fn finish(&mut self, deliver: &mut impl FnMut(Delivery<'_>)) {
        while self.is_holding() {
            self.give_up(deliver);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin(frame: u64, total: usize) -> Origin {
        let total = u32::try_from(total).unwrap();
        Origin { frame, frame_first: frame, payload_bytes: total, ..Origin::default() }
    }

    fn run(start: u32, segments: &[(u32, &[u8])]) -> (Vec<u8>, u64, u64) {
        let mut stream = Reassembly::default();
        stream.open(start.wrapping_sub(1));
        let (mut bytes, mut repeated, mut missing) = (Vec::new(), 0, 0);
        let mut deliver = |delivery: Delivery<'_>| match delivery {
            Delivery::Chunk(piece, chunk) => {
                assert_eq!(piece.len() as usize, chunk.len());
                bytes.extend_from_slice(chunk);
            }
            Delivery::Repeated(piece) | Delivery::KeepAlive(piece) => repeated += u64::from(piece.len()),
            Delivery::Gap(gap, _) => missing += gap,
        };
        for (number, (offset, payload)) in segments.iter().enumerate() {
            stream.segment(start.wrapping_add(*offset), origin(number as u64, payload.len()).whole(), payload, &mut deliver);
        }
        stream.finish(&mut deliver);
        (bytes, repeated, missing)
    }

    #[test]
    fn segments_out_of_order_are_put_in_order_across_the_wrap() {
        let start = u32::MAX - 4;

        let (bytes, repeated, missing) = run(start, &[(0, b"abc"), (6, b"ghi"), (3, b"def"), (3, b"def"), (8, b"ijk")]);

        assert_eq!((b"abcdefghijk".to_vec(), 4, 0), (bytes, repeated, missing));
    }

    /// Three segments arrive before the one that all wait for, the middle one of them behind the others: two came behind later ones. It is no third one
    /// that a byte comes again.
    #[test]
    fn each_segment_that_comes_behind_later_ones_is_out_of_order() {
        let mut stream = Reassembly::default();
        stream.open(u32::MAX);
        let mut is_behind = |number: u32| {
            let bytes = [0; 10];
            stream.segment(number * 10, origin(number.into(), 10).whole(), &bytes, &mut |_| ())
        };

        assert_eq!([false, false, false, true, false, true], [0, 2, 4, 3, 3, 1].map(&mut is_behind));
    }

    /// Linux puts segments of a few bytes together where it sends them again: those that had arrived keep their bytes, and one segment was sent again.
    #[test]
    fn segments_sent_again_as_one_are_one_segment_sent_again() {
        let mut stream = Reassembly::default();
        stream.open(u32::MAX);
        let (mut new, mut repeated) = (Vec::new(), Vec::new());
        let mut deliver = |delivery: Delivery<'_>| match delivery {
            Delivery::Chunk(piece, bytes) => new.push((piece.frame, bytes.to_vec())),
            Delivery::Repeated(piece) => repeated.push((piece.frame, piece.from(), piece.to())),
            other => panic!("{other:?}"),
        };
        for (frame, offset, bytes) in [(1, 2, b"cd".as_slice()), (2, 4, b"ef"), (3, 0, b"abcdef")] {
            stream.segment(offset, origin(frame, bytes.len()).whole(), bytes, &mut deliver);
        }

        assert_eq!(vec![(3, b"ab".to_vec()), (1, b"cd".to_vec()), (2, b"ef".to_vec())], new);
        assert_eq!(vec![(3, 2, 6)], repeated);
    }

    /// Segments of 100 bytes, so many ms apart, the first of which comes behind `count` others; the peer may ask for it. Returns how many bytes were missing.
    fn missing_behind(count: u32, apart_ms: i64, asks: bool) -> u64 {
        let mut stream = Reassembly::default();
        stream.open(u32::MAX);
        let mut missing = 0;
        let mut deliver = |delivery: Delivery<'_>| missing += if let Delivery::Gap(gap, _) = delivery { gap } else { 0 };
        for number in (1..=count).chain([0]) {
            let time_ns = i64::from(number) * apart_ms * 1_000_000;
            let origin = Origin { time_ns, ..origin(number.into(), 100) };
            stream.segment(number * 100, origin.whole(), &[0; 100], &mut deliver);
            if asks {
                stream.peer_acknowledges(&Acknowledged { acknowledgment: 0, time_ns, has_payload: false }, &mut deliver);
            }
        }
        stream.finish(&mut deliver);
        missing
    }

    #[test]
    fn a_hole_may_be_filled_late_where_the_peer_asks_for_it_or_had_no_time_to() {
        assert_eq!([0, 100], [512, 513].map(|count| missing_behind(count, 10, false)));
        assert_eq!([0, 100], [2_000, 2_002].map(|count| missing_behind(count, 1, false)));
        assert_eq!([0, 100], [10_000, 100_000].map(|count| missing_behind(count, 10, true)));
    }

    #[test]
    fn a_fin_tells_of_a_hole_before_the_end() {
        assert_eq!((b"abc".to_vec(), 0, 3), run(7, &[(0, b"abc"), (6, b"")]));
        assert_eq!((b"abcdef".to_vec(), 0, 0), run(7, &[(0, b"abc"), (6, b""), (3, b"def"), (6, b"")]));
        assert_eq!((b"abc".to_vec(), 0, 0), run(7, &[(0, b"abc"), (3, b""), (4, b"")]));
    }

    #[test]
    fn a_hole_at_the_end_is_a_gap() {
        assert_eq!((b"abcghi".to_vec(), 0, 3), run(7, &[(0, b"abc"), (6, b"ghi")]));
    }

    proptest! {
        #[test]
        fn any_order_with_repeats_gives_the_stream(start: u32, data in proptest::collection::vec(any::<u8>(), 1..200),
                                                   cuts in proptest::collection::vec((0usize..200, 1usize..50), 0..30)) {
            let mut segments: Vec<(u32, &[u8])> = cuts.iter().map(|&(from, len)| {
                let from = from % data.len();
                (u32::try_from(from).unwrap(), &data[from..(from + len).min(data.len())])
            }).collect();
            segments.push((0, &data));
            let (bytes, _, missing) = run(start, &segments);
            prop_assert_eq!(missing, 0);
            prop_assert_eq!(bytes, data);
        }
    }
}
