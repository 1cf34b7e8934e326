//! One direction of a TCP connection (RFC 9293 §3.4): segments in, bytes in order out, with what was sent again and what is missing.

use crate::span::{Origin, Piece};
use std::collections::VecDeque;

/// What the direction hands on, in stream order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// New bytes, next in order. `bytes` may be shorter than the piece (snap length).
    Chunk(Piece<'a>, &'a [u8]),
    /// Bytes that came before: a retransmission.
    Repeated {
        /// The bytes.
        piece: Piece<'a>,
        /// Whether they are the first such bytes of their segment, which counts once.
        is_first: bool,
    },
    /// The last byte once more, by which a side asks whether the peer is still there (RFC 9293 §3.8.4).
    KeepAlive(Piece<'a>),
    /// So many bytes of the stream are not in the capture; the piece is the one behind them, which comes next.
    Gap(u64, Piece<'a>),
}

/// What tells that the stream reaches up to some place, where bytes before it are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teller {
    /// A segment of its bytes, or its FIN.
    Segment,
    /// The peer's acknowledgement, up to its own FIN: it may be of a FIN too.
    Peer,
    /// The peer's acknowledgement behind its own FIN: what it still waited for is a FIN.
    PeerBehindFin,
    /// The sender's RST, whose number is that of the next byte (RFC 9293 §3.5.2, §3.10.4), or what else tells that there are bytes up to the place.
    Bytes,
}

/// A segment, or a part of one, that waits for the bytes before it. No two hold the same byte.
#[derive(Debug)]
struct Held {
    sequence: u32,
    /// No segment, and no bytes, where it is another packet.
    teller: Teller,
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

    /// Whether it is no segment: another packet told that the stream reaches up to here.
    const fn is_told(&self) -> bool {
        !matches!(self.teller, Teller::Segment)
    }

    /// Where it ends.
    const fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.to - self.from)
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

    /// Whether segments are held from place `at` on.
    fn has_segment(&self, at: usize) -> bool {
        self.held.range(at..).any(|held| !held.is_told())
    }

    /// Holds what is not held yet, at its place.
    fn put(&mut self, at: usize, held: Held) {
        self.bytes += held.room();
        self.held.insert(at, held);
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
pub struct Acknowledged<'a> {
    /// Up to where it has got all.
    pub acknowledgment: u32,
    /// What said so.
    pub origin: &'a Origin,
    /// Whether the peer has sent its FIN, and so sends no more bytes that could answer those missing.
    pub has_peer_ended: bool,
    /// Whether it is behind that FIN.
    pub is_behind_fin: bool,
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
pub const fn distance(a: u32, b: u32) -> i32 {
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

    /// Whether what comes next was told of before it came, as by its acknowledgement.
    #[inline]
    #[must_use]
    pub fn is_told_of(&self) -> bool {
        self.waiting.as_ref().and_then(|waiting| waiting.held.front()).is_some_and(Held::is_told)
    }

    /// Whether an acknowledgement is of bytes that have not come, or some have not: one more than they may be a FIN.
    #[inline]
    #[must_use]
    pub const fn is_ahead(&self, acknowledgment: u32) -> bool {
        self.is_started && distance(acknowledgment, self.next) > 1
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
            let (waiting, is_behind) = self.hold(sequence, piece, bytes, deliver);
            if waiting.is_hopeless(piece.time_ns) {
                self.give_up(false, deliver);
            }
            return is_behind;
        }
        let Some(waiting) = &self.waiting else {
            self.pass(sequence, piece, bytes, &mut true, deliver);
            return false;
        };
        let is_behind = distance(sequence.wrapping_add(piece.len()), self.next) > 0 && waiting.has_segment(0);
        self.fill(sequence, piece, bytes, deliver);
        is_behind
    }

    /// Another packet tells that the stream reaches up to `end`. What lies before it may still come: the capture may have mixed up frames. What is further
    /// away than a window is not of this connection.
    pub fn reaches(&mut self, end: u32, teller: Teller, origin: &Origin) {
        let ahead = distance(end, self.next);
        let is_of_window = self.is_ahead(end) && ahead as usize <= HELD_BYTES;
        let last = self.waiting.as_mut().and_then(|waiting| waiting.held.back_mut());
        if let Some(last) = last.filter(|last| is_of_window && distance(end, last.end()) <= 1) {
            if last.is_told() && distance(end, last.end()) == 1 {
                // the FIN comes by itself
                last.teller = Teller::Bytes;
            }
            return;
        }
        if !is_of_window {
            return;
        }
        let waiting = self.waiting.get_or_insert_default();
        let held = Held { sequence: end, teller, origin: *origin, from: 0, to: 0, bytes: Vec::new() };
        waiting.put(waiting.held.len(), held);
    }

    /// Passes on a segment that begins before those that wait, and them: each byte with the segment that brought it first. What a sender sends again it may
    /// put together from several segments (RFC 9293 §3.8.1), some of which have arrived.
    fn fill(&mut self, sequence: u32, piece: Piece<'_>, bytes: &[u8], deliver: &mut impl FnMut(Delivery<'_>)) {
        let (mut sequence, mut piece, mut bytes, mut is_first) = (sequence, piece, bytes, true);
        while let Some(first) = self.waiting.as_ref().and_then(|waiting| waiting.held.front()).map(|held| held.sequence) {
            let ahead = first.wrapping_sub(sequence);
            if ahead >= piece.len() {
                break;
            }
            let (before, behind) = piece.split(ahead);
            let (head, tail) = bytes.split_at(bytes.len().min(ahead as usize));
            self.pass(sequence, before, head, &mut is_first, deliver);
            self.release(deliver);
            (sequence, piece, bytes) = (first, behind, tail);
        }
        self.pass(sequence, piece, bytes, &mut is_first, deliver);
        self.release(deliver);
    }

    /// Passes on a segment, or a part of one, that begins at or before the next byte. `is_first` tells whether none of the segment's bytes was passed on as
    /// repeated yet.
    #[inline]
    fn pass(&mut self, sequence: u32, piece: Piece<'_>, bytes: &[u8], is_first: &mut bool, deliver: &mut impl FnMut(Delivery<'_>)) {
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
        deliver(if is_probe {
            Delivery::KeepAlive(repeated)
        } else {
            Delivery::Repeated { piece: repeated, is_first: std::mem::take(is_first) }
        });
        if !new.is_empty() {
            self.next = self.next.wrapping_add(new.len());
            deliver(Delivery::Chunk(new, bytes.get(old as usize..).unwrap_or(&[])));
        }
    }

    /// Holds what is new of a segment that begins behind a hole; the rest is repeated. Returns also whether it fills a part of a hole: it has new bytes, and
    /// later segments are held already.
    fn hold<'w>(
        &'w mut self,
        sequence: u32,
        piece: Piece<'_>,
        bytes: &[u8],
        deliver: &mut impl FnMut(Delivery<'_>),
    ) -> (&'w Waiting, bool) {
        let next = self.next;
        let waiting = self.waiting.get_or_insert_default();
        let ahead = distance(sequence, next);
        let mut at = waiting.held.partition_point(|held| distance(held.end(), next) <= ahead);
        let (mut sequence, mut piece, mut bytes, mut is_first, mut is_behind) = (sequence, piece, bytes, true, false);
        loop {
            let until = waiting.held.get(at).map(|held| (distance(held.sequence, sequence), held.end()));
            let is_held = until.is_some_and(|(ahead, _)| ahead <= 0);
            let len = until.map_or(u32::MAX, |(ahead, end)| if is_held { end.wrapping_sub(sequence) } else { ahead.cast_unsigned() });
            let (part, rest) = piece.split(len);
            let (head, tail) = bytes.split_at(bytes.len().min(part.len() as usize));
            if is_held && !part.is_empty() {
                deliver(Delivery::Repeated { piece: part, is_first: std::mem::take(&mut is_first) });
            } else if !is_held {
                is_behind |= waiting.has_segment(at);
                let (from, to) = (part.from(), part.to());
                waiting.put(at, Held { sequence, teller: Teller::Segment, origin: *part.origin, from, to, bytes: head.to_vec() });
            }
            if rest.is_empty() {
                return (waiting, is_behind);
            }
            (at, sequence, piece, bytes) = (at + 1, sequence.wrapping_add(part.len()), rest, tail);
        }
    }

    /// Delivers the held segments that are now in order.
    fn release(&mut self, deliver: &mut impl FnMut(Delivery<'_>)) {
        while let Some(held) = self.waiting.as_mut().and_then(|waiting| waiting.pop(self.next)) {
            self.waiting.take_if(|waiting| waiting.held.is_empty());
            let Held { sequence, origin, from, to, bytes, .. } = &held;
            self.pass(*sequence, origin.piece(*from, *to), bytes, &mut true, deliver);
        }
    }

    /// The peer acknowledges bytes behind a hole: it was filled there, so the capture lacks it. Where it says no more than that, and says it at once, the
    /// capture may have mixed up frames, and the hole be filled here too.
    pub fn peer_acknowledges(&mut self, peer: &Acknowledged<'_>, deliver: &mut impl FnMut(Delivery<'_>)) {
        if let Some(waiting) = &mut self.waiting {
            let Some(first) = waiting.held.front() else { return };
            if distance(peer.acknowledgment, first.sequence) < 0 {
                waiting.with_hope = waiting.held.len();
            } else {
                waiting.acknowledged += 1;
                let is_late = peer.origin.time_ns - first.origin.time_ns > CAPTURE_JITTER_NS;
                // bytes of the peer's may answer those behind the hole
                let is_answer = peer.origin.payload_bytes > 0 && !first.is_told();
                // whether a FIN is among what is missing is told later, if at all
                let is_end = first.is_told() && peer.has_peer_ended && peer.origin.payload_bytes == 0;
                if !is_end && (is_answer || is_late || waiting.acknowledged >= ACKNOWLEDGEMENTS) {
                    self.give_up(false, deliver);
                }
            }
        }
        self.reaches(peer.acknowledgment, if peer.is_behind_fin { Teller::PeerBehindFin } else { Teller::Peer }, peer.origin);
    }

    /// Takes the first hole for a loss: reports the gap and goes on behind it. Where only an acknowledgement tells of it, and nothing is behind it, the last
    /// number may be the FIN's (RFC 9293 §3.6: each side sends one): where it is the only one, where the peer has sent its own FIN before, or where that
    /// is acknowledged and nothing more came.
    fn give_up(&mut self, is_peers_fin_acknowledged: bool, deliver: &mut impl FnMut(Delivery<'_>)) {
        let Some(waiting) = &self.waiting else { return };
        let Some(first) = waiting.held.front() else { return };
        let missing = first.sequence.wrapping_sub(self.next);
        let is_end = first.is_told() && !waiting.has_segment(1);
        let is_of_closed = match first.teller {
            Teller::Peer => is_peers_fin_acknowledged,
            Teller::PeerBehindFin => true,
            Teller::Segment | Teller::Bytes => false,
        };
        let bytes = missing - u32::from(missing > 0 && is_end && (missing == 1 || is_of_closed));
        self.next = if bytes > 0 { self.next.wrapping_add(bytes) } else { first.sequence };
        if bytes > 0 {
            deliver(Delivery::Gap(bytes.into(), first.origin.piece(first.from, first.to)));
        }
        self.release(deliver);
    }

    /// The stream ends: reports all gaps. The peer's FIN may have been acknowledged.
    pub fn finish(&mut self, is_peers_fin_acknowledged: bool, deliver: &mut impl FnMut(Delivery<'_>)) {
        while self.is_holding() {
            self.give_up(is_peers_fin_acknowledged, deliver);
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
            Delivery::Repeated { piece, .. } | Delivery::KeepAlive(piece) => repeated += u64::from(piece.len()),
            Delivery::Gap(gap, _) => missing += gap,
        };
        for (number, (offset, payload)) in segments.iter().enumerate() {
            stream.segment(start.wrapping_add(*offset), origin(number as u64, payload.len()).whole(), payload, &mut deliver);
        }
        stream.finish(false, &mut deliver);
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

    /// New bytes with their frame.
    type New = (u64, Vec<u8>);
    /// Repeated ones: frame, where they begin and end in it, and whether they are its first ones.
    type Repeated = (u64, u32, u32, bool);

    /// Takes segments (frame, place in the stream, bytes), among which is no gap.
    fn told_apart(segments: &[(u64, u32, &[u8])]) -> (Vec<New>, Vec<Repeated>) {
        let mut stream = Reassembly::default();
        stream.open(u32::MAX);
        let (mut new, mut repeated) = (Vec::new(), Vec::new());
        let mut deliver = |delivery: Delivery<'_>| match delivery {
            Delivery::Chunk(piece, bytes) => new.push((piece.frame, bytes.to_vec())),
            Delivery::Repeated { piece, is_first } => repeated.push((piece.frame, piece.from(), piece.to(), is_first)),
            other => panic!("{other:?}"),
        };
        for &(frame, offset, bytes) in segments {
            stream.segment(offset, origin(frame, bytes.len()).whole(), bytes, &mut deliver);
        }
        (new, repeated)
    }

    /// Linux puts segments of a few bytes together where it sends them again: those that had arrived keep their bytes, and one segment was sent again.
    #[test]
    fn segments_sent_again_as_one_are_one_segment_sent_again() {
        let (new, repeated) = told_apart(&[(1, 2, b"cd"), (2, 4, b"ef"), (3, 0, b"abcdef")]);

        assert_eq!(vec![(3, b"ab".to_vec()), (1, b"cd".to_vec()), (2, b"ef".to_vec())], new);
        assert_eq!(vec![(3, 2, 6, true)], repeated);
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
                stream.peer_acknowledges(
                    &Acknowledged {
                        acknowledgment: 0,
                        origin: &Origin { time_ns, ..Origin::default() },
                        has_peer_ended: false,
                        is_behind_fin: false,
                    },
                    &mut deliver,
                );
            }
        }
        stream.finish(false, &mut deliver);
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

    /// While the first byte is missing a segment comes again that covers two others and the hole between them: two runs of it are repeated, of one segment.
    #[test]
    fn a_segment_over_several_holes_is_one_segment_sent_again() {
        let (new, repeated) = told_apart(&[(1, 1, b"b"), (2, 3, b"d"), (3, 1, b"bcde"), (4, 0, b"a")]);

        assert_eq!([(4, b"a"), (1, b"b"), (3, b"c"), (2, b"d"), (3, b"e")].map(|(frame, byte)| (frame, byte.to_vec())).to_vec(), new);
        assert_eq!(vec![(3, 0, 1, true), (3, 2, 3, false)], repeated);
    }

    /// Up to `end` the peer has got all, or the sender sent all; then segments come. Returns the bytes missing, and whether one came out of order.
    fn told(end: u32, segments: &[(u32, &[u8])]) -> (u64, bool) {
        told_by(Teller::Peer, false, end, segments)
    }

    /// The same of who tells it, where the peer's FIN is acknowledged or not.
    fn told_by(teller: Teller, is_acknowledged: bool, end: u32, segments: &[(u32, &[u8])]) -> (u64, bool) {
        let mut stream = Reassembly::default();
        stream.open(u32::MAX);
        let (mut missing, mut is_behind) = (0, false);
        let mut deliver = |delivery: Delivery<'_>| missing += if let Delivery::Gap(gap, _) = delivery { gap } else { 0 };
        stream.reaches(end, teller, &Origin::default());
        for (offset, bytes) in segments {
            is_behind |= stream.segment(*offset, origin(1, bytes.len()).whole(), bytes, &mut deliver);
        }
        stream.finish(is_acknowledged, &mut deliver);
        (missing, is_behind)
    }

    #[test]
    fn what_is_acknowledged_and_does_not_come_is_missing() {
        assert_eq!((6, false), told(6, &[]));
        assert_eq!((4, false), told(6, &[(0, b"ab")]));
        assert_eq!((0, false), told(6, &[(0, b"ab"), (2, b"cdef")]));
        assert_eq!((3, false), told(6, &[(3, b"defgh")]));
        // the last number is a FIN's, which may not be there
        assert_eq!((0, false), told(6, &[(0, b"abcde"), (5, b"")]));
        assert_eq!((0, false), told(6, &[(0, b"abcde")]));
        // that is no acknowledgement of this connection's
        assert_eq!((0, false), told(1 << 25, &[(0, b"ab")]));
    }

    /// RFC 9293 §3.4: a FIN has a number of its own, which the peer acknowledges with the last byte.
    #[test]
    fn the_fin_of_a_connection_that_both_sides_end_is_no_byte() {
        for (teller, is_acknowledged) in [(Teller::Peer, true), (Teller::PeerBehindFin, false)] {
            let told = |end, segments: &[(u32, &[u8])]| told_by(teller, is_acknowledged, end, segments);
            assert_eq!([(3, false), (1, false), (0, false)], [6, 4, 3].map(|end| told(end, &[(0, b"ab")])));
            // the FIN itself is there, or more bytes are
            assert_eq!((3, false), told(6, &[(0, b"ab"), (5, b"")]));
            assert_eq!((4, false), told(6, &[(0, b"ab"), (6, b"")]));
            assert_eq!((4, false), told(6, &[(0, b"ab"), (6, b"gh")]));
            assert_eq!((1, false), told(3, &[(0, b"ab"), (3, b"d")]));
        }
        // nobody tells that the client has ended, or the connection is broken off
        assert_eq!((4, false), told_by(Teller::Peer, false, 6, &[(0, b"ab")]));
        assert_eq!((4, false), told_by(Teller::Bytes, true, 6, &[(0, b"ab")]));
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
