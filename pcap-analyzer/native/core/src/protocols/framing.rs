//! Cuts a direction's bytes into messages, and accounts for every byte and every share of a header on the way.

use super::{by_row, Decoder, Input, Malformed, Protocol, Step};
use crate::message::{Message, Side};
use crate::note::{NoteKind, GAP, MALFORMED, PORT_SHARED, UNFINISHED, UNPARSED};
use crate::packet::Headers;
use crate::span::{self, Origin, Piece};
use std::num::NonZeroU16;

/// What takes the messages that were cut.
pub trait Receiver {
    /// A message with its location and bytes filled in, and the captured bytes that it was decoded from.
    fn message(&mut self, message: &mut Message, from: Side, bytes: &[u8]);
    /// Bytes that belong to no message.
    fn unassigned(&mut self, remainder: &Remainder, from: Side);
    /// The connection goes on in another protocol, whose decoder takes the place of `decoder`.
    fn go_on_in(&mut self, protocol: &'static Protocol, decoder: &mut Box<dyn Decoder>) {
        let _ = (protocol, decoder);
    }
}

/// Bytes that belong to no message, with their share of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remainder {
    /// Why.
    pub why: NoteKind,
    /// Frame where it stands.
    pub frame: u64,
    /// Which input.
    pub file: u16,
    /// Share of headers.
    pub headers: Headers,
    /// Bytes, 0 for a gap.
    pub bytes: u64,
    /// Bytes of the stream that are not in the capture.
    pub missing: u64,
}

impl Remainder {
    /// A whole piece.
    fn of(piece: Piece<'_>, why: NoteKind) -> Self {
        Self { why, frame: piece.frame, file: piece.file, headers: piece.share(), bytes: piece.len().into(), missing: 0 }
    }
}

/// What both directions of a conversation share while bytes are cut.
pub struct Cutter<'a> {
    /// The conversation's decoder.
    pub decoder: &'a mut Box<dyn Decoder>,
    /// The message, used again and again.
    pub message: &'a mut Message,
    /// Who sent the bytes.
    pub from: Side,
    /// Frame in which the bytes became available, and its time.
    pub now: (u64, i64),
    /// Whether the bytes stand behind a gap, and so did not wait for those before them.
    pub is_behind_gap: bool,
    /// Bytes of an unfinished message that are kept, unless its decoder wants the whole; what is beyond is counted only.
    pub keep_bytes: usize,
    /// Whether the lists of frames are wanted.
    pub wants_frames: bool,
    /// The frames that bring the bytes before their last one does: of a packet that was fragmented, of a record over several segments.
    pub earlier_frames: &'a [u64],
}

/// Bytes, at most, that may be too few to tell whether a message begins with them.
pub const TOO_FEW: usize = 64;

/// Bytes kept of an unfinished message at most.
pub const KEEP_MOST: usize = 1 << 24;

impl<'a> Cutter<'a> {
    /// Earlier frames of the bytes at hand, where lists of frames are wanted.
    fn frames(&self) -> Option<&'a [u64]> {
        self.wants_frames.then_some(self.earlier_frames)
    }

    /// Bytes of an unfinished message that are kept.
    fn kept(&self) -> usize {
        if self.decoder.wants_whole() {
            self.keep_bytes.max(KEEP_MOST)
        } else {
            self.keep_bytes
        }
    }
}

/// The start of a message whose end has not come yet.
#[derive(Debug, Default)]
struct Partial {
    bytes: Vec<u8>,
    wire_bytes: usize,
    needed: usize,
    headers: Headers,
    frames: Vec<u64>,
    first: Option<(u64, i64)>,
    /// The first and the last frame by number: bytes that come again, or late, need not be in their order.
    edges: Option<[u64; 2]>,
    file: u16,
    is_cut: bool,
}

impl Partial {
    fn begin(piece: Piece<'_>, bytes: &[u8], keep_bytes: usize, earlier: Option<&[u64]>) -> Box<Self> {
        let mut partial = Box::<Self>::default();
        partial.absorb(piece, bytes, keep_bytes, earlier);
        partial
    }

    fn absorb(&mut self, piece: Piece<'_>, bytes: &[u8], keep_bytes: usize, earlier: Option<&[u64]>) {
        self.keep(bytes, keep_bytes);
        self.count(piece, bytes.len(), earlier);
    }

    /// Keeps bytes as long as they follow those kept without a hole.
    fn keep(&mut self, bytes: &[u8], keep_bytes: usize) {
        if self.bytes.len() == self.wire_bytes {
            let room = keep_bytes.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or(&[]));
        }
    }

    fn count(&mut self, piece: Piece<'_>, captured: usize, earlier: Option<&[u64]>) {
        self.wire_bytes += piece.len() as usize;
        self.is_cut |= captured < piece.len() as usize;
        self.first.get_or_insert((piece.frame_first, piece.time_first_ns));
        let [first, last] = self.edges.unwrap_or([piece.frame_first, piece.frame]);
        // each file has its own numbers
        let is_of_other_file = self.file != piece.file;
        self.edges = Some(if is_of_other_file { [first, piece.frame] } else { [first.min(piece.frame_first), last.max(piece.frame)] });
        self.file = piece.file;
        span::add(&mut self.headers, &piece.share());
        let Some(earlier) = earlier else { return };
        // segments that waited for the packet at hand have frames of their own
        let earlier = if earlier.first() == Some(&piece.frame_first) { earlier } else { &[] };
        for frame in earlier.iter().chain([&piece.frame]) {
            if !self.frames.iter().rev().take(earlier.len() + 1).any(|known| known == frame) {
                self.frames.push(*frame);
            }
        }
    }

    fn remainder(&self, why: NoteKind) -> Remainder {
        Remainder {
            why,
            frame: self.first.map_or(0, |(frame, _)| frame),
            file: self.file,
            headers: self.headers,
            bytes: self.wire_bytes as u64,
            missing: 0,
        }
    }
}

/// Whether so few bytes came, with those `before` them, that others have to tell what they are; what was not captured never will.
fn are_few(piece: Piece<'_>, bytes: &[u8], before: usize) -> bool {
    bytes.len() == piece.len() as usize && before + bytes.len() <= TOO_FEW
}

/// One direction of a conversation over a byte stream.
#[derive(Debug, Default)]
pub struct Half {
    /// Where the direction is lost: a segment of so few bytes that those behind have to tell whether a message begins with it.
    partial: Option<Box<Partial>>,
    missing_in_partial: u64,
    is_lost: bool,
    is_after_gap: bool,
}

impl Half {
    /// A direction whose first byte, seen now, may stand anywhere in a message.
    #[must_use]
    pub fn in_mid_stream() -> Self {
        Self { is_lost: true, ..Self::default() }
    }

    /// Reads a little of it.
    #[inline]
    #[must_use]
    pub fn touch(&self) -> u64 {
        self.is_lost.into()
    }

    /// Takes the next bytes of the stream.
    #[inline]
    pub fn chunk(&mut self, cutter: &mut Cutter<'_>, piece: Piece<'_>, bytes: &[u8], receiver: &mut impl Receiver) {
        let Some(mut partial) = self.partial.take() else { return self.cut(cutter, piece, bytes, receiver) };
        if self.is_lost {
            let Some(start) = self.look_again(partial, cutter, piece, bytes, receiver) else { return };
            partial = start;
        }
        let Some(used) = self.resume(partial, cutter, piece, bytes, receiver) else { return };
        let (_, rest) = piece.split(used);
        if !rest.is_empty() {
            self.cut(cutter, rest, bytes.get(used as usize..).unwrap_or(&[]), receiver);
        }
    }

    /// Looks whether a message begins with the few bytes that did not tell, now that others follow (some write a header by itself). Returns its start;
    /// else the piece is done with.
    #[cold]
    fn look_again(
        &mut self,
        mut few: Box<Partial>,
        cutter: &mut Cutter<'_>,
        piece: Piece<'_>,
        bytes: &[u8],
        receiver: &mut impl Receiver,
    ) -> Option<Box<Partial>> {
        let is_boundary = |bytes: &[u8]| cutter.decoder.is_boundary(bytes, cutter.from);
        let begins = if is_boundary(bytes) == Some(true) { Some(false) } else { is_boundary(&[few.bytes.as_slice(), bytes].concat()) };
        if begins == Some(true) {
            self.is_lost = false;
            few.needed = few.wire_bytes + 1;
            return Some(few);
        }
        if begins.is_none() && are_few(piece, bytes, few.wire_bytes) {
            few.absorb(piece, bytes, usize::MAX, cutter.frames());
            self.partial = Some(few);
        } else {
            self.lose(&few, UNPARSED, cutter.from, receiver);
            self.cut(cutter, piece, bytes, receiver);
        }
        None
    }

    /// Goes on with an unfinished message. Returns how many bytes of the piece it took, where some may be left.
    fn resume(
        &mut self,
        mut partial: Box<Partial>,
        cutter: &mut Cutter<'_>,
        piece: Piece<'_>,
        bytes: &[u8],
        receiver: &mut impl Receiver,
    ) -> Option<u32> {
        let before = partial.wire_bytes;
        let wire_bytes = before + piece.len() as usize;
        if wire_bytes < partial.needed {
            partial.absorb(piece, bytes, cutter.kept(), cutter.frames());
            self.partial = Some(partial);
            return None;
        }
        partial.keep(bytes, cutter.kept().max(before + bytes.len()));
        cutter.message.clear();
        let step = cutter.decoder.next(Input { bytes: &partial.bytes, wire_bytes }, cutter.from, cutter.message);
        let (len, fault) = match step {
            Step::Message { len } => (len, None),
            Step::Malformed { len, why } => (len, Some(why)),
            Step::NeedMore { at_least } if at_least > wire_bytes => {
                partial.needed = at_least;
                partial.count(piece, bytes.len(), cutter.frames());
                self.partial = Some(partial);
                return None;
            }
            Step::NeedMore { .. } => {
                partial.count(piece, bytes.len(), cutter.frames());
                self.lose(&partial, UNPARSED, cutter.from, receiver);
                return None;
            }
        };
        if len < before {
            partial.count(piece, bytes.len(), cutter.frames());
            self.divide(&partial, cutter, (len, fault), piece, receiver);
            return None;
        }
        let used = u32::try_from(len - before).unwrap_or(u32::MAX).min(piece.len());
        let (mine, _) = piece.split(used);
        partial.count(mine, bytes.len().min(used as usize), cutter.frames());
        let bytes = partial.bytes.get(..len.min(partial.bytes.len())).unwrap_or(&[]);
        self.emit_partial(&partial, cutter, fault, mine, bytes, receiver);
        Some(used)
    }

    /// A message ends within what was waited with: what that began with was thought to be longer, and turned out to be something else. What is behind it
    /// is cut as if one packet had brought all.
    fn divide(
        &mut self,
        partial: &Partial,
        cutter: &mut Cutter<'_>,
        (len, fault): (usize, Option<Malformed>),
        last: Piece<'_>,
        receiver: &mut impl Receiver,
    ) {
        let (frame_first, time_first_ns) = partial.first.unwrap_or((last.frame_first, last.time_first_ns));
        let payload_bytes = u32::try_from(partial.wire_bytes).unwrap_or(u32::MAX);
        let origin = Origin { frame_first, time_first_ns, headers: partial.headers, payload_bytes, ..*last.origin };
        let (mine, rest) = origin.whole().split(u32::try_from(len).unwrap_or(u32::MAX));
        let (captured, behind) = partial.bytes.split_at(len.min(partial.bytes.len()));
        emit(cutter, mine, captured.len(), fault);
        cutter.message.missing_bytes = self.take_missing();
        if cutter.wants_frames {
            cutter.message.frames.clone_from(&partial.frames);
        }
        self.hand_over(cutter, fault, captured, receiver);
        self.cut(cutter, rest, behind, receiver);
    }

    fn emit_partial(
        &mut self,
        partial: &Partial,
        cutter: &mut Cutter<'_>,
        fault: Option<Malformed>,
        last: Piece<'_>,
        bytes: &[u8],
        receiver: &mut impl Receiver,
    ) {
        let message = &mut *cutter.message;
        locate(message, cutter.now, last);
        [message.frame_first, message.frame_last] = partial.edges.unwrap_or([last.frame_first, last.frame]);
        message.time_first_ns = partial.first.map_or(last.time_first_ns, |(_, time_ns)| time_ns);
        message.frames.extend_from_slice(&partial.frames);
        message.is_truncated = partial.is_cut;
        message.missing_bytes = self.take_missing();
        weigh(message, &partial.headers, partial.wire_bytes, fault);
        self.hand_over(cutter, fault, bytes, receiver);
    }

    /// Bytes of the unfinished message that are not in the capture; the next one has none.
    fn take_missing(&mut self) -> u32 {
        u32::try_from(std::mem::take(&mut self.missing_in_partial)).unwrap_or(u32::MAX)
    }

    fn hand_over(&mut self, cutter: &mut Cutter<'_>, fault: Option<Malformed>, bytes: &[u8], receiver: &mut impl Receiver) {
        cutter.message.is_after_gap = std::mem::take(&mut self.is_after_gap);
        receiver.message(cutter.message, cutter.from, bytes);
        self.is_lost = fault.is_some();
        if let Some(protocol) = cutter.message.carries_on.and_then(by_row) {
            receiver.go_on_in(protocol, cutter.decoder);
        }
    }

    /// Cuts messages from bytes that begin at a boundary (or anywhere, after a loss).
    fn cut(&mut self, cutter: &mut Cutter<'_>, piece: Piece<'_>, bytes: &[u8], receiver: &mut impl Receiver) {
        let (mut piece, mut bytes) = (piece, bytes);
        while !piece.is_empty() {
            if self.is_lost {
                let Some(skipped) = self.find_boundary(cutter, piece, bytes, receiver) else { return };
                bytes = bytes.get(skipped as usize..).unwrap_or(&[]);
                piece = piece.split(skipped).1;
            }
            let wire_bytes = piece.len() as usize;
            cutter.message.clear();
            let (len, fault) = match cutter.decoder.next(Input { bytes, wire_bytes }, cutter.from, cutter.message) {
                Step::Message { len } => (len, None),
                Step::Malformed { len, why } => (len, Some(why)),
                Step::NeedMore { at_least } => return self.wait(cutter, piece, bytes, at_least, receiver),
            };
            let used = u32::try_from(len).unwrap_or(u32::MAX).clamp(1, piece.len());
            let (mine, rest) = piece.split(used);
            let captured = bytes.get(..used as usize).unwrap_or(bytes);
            emit(cutter, mine, captured.len(), fault);
            self.hand_over(cutter, fault, captured, receiver);
            bytes = bytes.get(used as usize..).unwrap_or(&[]);
            piece = rest;
        }
    }

    /// Keeps the start of a message until `at_least` bytes of it are there.
    fn wait(&mut self, cutter: &Cutter<'_>, piece: Piece<'_>, bytes: &[u8], at_least: usize, receiver: &mut impl Receiver) {
        let mut partial = Partial::begin(piece, bytes, cutter.kept().max(bytes.len()), cutter.frames());
        partial.needed = at_least;
        if at_least <= partial.wire_bytes {
            self.lose(&partial, UNPARSED, cutter.from, receiver);
        } else {
            self.partial = Some(partial);
        }
    }

    /// Looks for the next message boundary in `bytes`: returns how many bytes are before it. Where there is none, all are given up,
    /// unless they are too few to tell.
    fn find_boundary(&mut self, cutter: &Cutter<'_>, piece: Piece<'_>, bytes: &[u8], receiver: &mut impl Receiver) -> Option<u32> {
        let is_boundary = |at: usize| cutter.decoder.is_boundary(bytes.get(at..).unwrap_or(&[]), cutter.from);
        let wire_bytes = piece.len() as usize;
        let is_start = bytes.len() < wire_bytes && cutter.decoder.is_cut_start(Input { bytes, wire_bytes }, cutter.from);
        let found = if is_start { Some(0) } else { (0..bytes.len()).find(|&at| is_boundary(at) == Some(true)) };
        if found.is_none() && are_few(piece, bytes, 0) && is_boundary(0).is_none() {
            self.partial = Some(Partial::begin(piece, bytes, usize::MAX, cutter.frames()));
            return None;
        }
        let skipped = found.map_or(piece.len(), |at| u32::try_from(at).unwrap_or(u32::MAX));
        if skipped > 0 {
            let (lost, _) = piece.split(skipped);
            receiver.unassigned(&Remainder::of(lost, UNPARSED), cutter.from);
        }
        self.is_lost = found.is_none();
        found.map(|_| skipped)
    }

    fn lose(&mut self, partial: &Partial, why: NoteKind, from: Side, receiver: &mut impl Receiver) {
        let mut remainder = partial.remainder(why);
        remainder.bytes -= std::mem::take(&mut self.missing_in_partial);
        receiver.unassigned(&remainder, from);
        self.is_lost = true;
    }

    /// `missing` bytes of the stream are not in the capture.
    pub fn gap(&mut self, cutter: &mut Cutter<'_>, missing: u64, receiver: &mut impl Receiver) {
        let (frame, _) = cutter.now;
        receiver.unassigned(&Remainder { why: GAP, frame, file: 0, headers: Headers::default(), bytes: 0, missing }, cutter.from);
        if let Some(few) = self.partial.take_if(|_| self.is_lost) {
            self.lose(&few, UNPARSED, cutter.from, receiver);
        }
        let Some(partial) = self.partial.take() else {
            self.is_after_gap = true;
            self.is_lost = true;
            return cutter.decoder.gap(cutter.from);
        };
        self.bridge(partial, cutter, missing, receiver);
        self.is_after_gap = true;
    }

    /// What carries this stream has missed some of it: nobody knows how much.
    pub fn interrupt(&mut self, cutter: &mut Cutter<'_>, receiver: &mut impl Receiver) {
        if let Some(partial) = self.partial.take() {
            self.lose(&partial, UNPARSED, cutter.from, receiver);
        }
        (self.is_lost, self.is_after_gap) = (true, true);
        cutter.decoder.gap(cutter.from);
    }

    /// Carries an unfinished message across a gap, as far as its known length allows.
    fn bridge(&mut self, mut partial: Box<Partial>, cutter: &mut Cutter<'_>, missing: u64, receiver: &mut impl Receiver) {
        let wire_bytes = partial.wire_bytes.saturating_add(usize::try_from(missing).unwrap_or(usize::MAX));
        let is_end_known = partial.needed > partial.wire_bytes + 1;
        partial.is_cut = true;
        if wire_bytes < partial.needed {
            partial.wire_bytes = wire_bytes;
            self.missing_in_partial += missing;
            self.partial = Some(partial);
            return;
        }
        cutter.message.clear();
        let step = cutter.decoder.next(Input { bytes: &partial.bytes, wire_bytes }, cutter.from, cutter.message);
        let Step::Message { len } = step else {
            self.lose(&partial, UNPARSED, cutter.from, receiver);
            return cutter.decoder.gap(cutter.from);
        };
        self.missing_in_partial += (len.saturating_sub(partial.wire_bytes)) as u64;
        partial.wire_bytes = len.max(partial.wire_bytes);
        let (frame, time_ns) = cutter.now;
        let (file, headers) = (partial.file, Headers::default());
        let last = Origin { frame, frame_first: frame, file, time_ns, time_first_ns: time_ns, headers, ..Origin::default() };
        let bytes = std::mem::take(&mut partial.bytes);
        self.emit_partial(&partial, cutter, None, last.whole(), &bytes, receiver);
        self.is_lost = len < wire_bytes || !is_end_known;
        if self.is_lost {
            cutter.decoder.gap(cutter.from);
        }
    }

    /// The stream ends: an unfinished message is given up.
    pub fn finish(&mut self, from: Side, receiver: &mut impl Receiver) {
        if let Some(partial) = self.partial.take() {
            self.lose(&partial, if self.is_lost { UNPARSED } else { UNFINISHED }, from, receiver);
        }
    }
}

/// Cuts the messages of a datagram.
pub fn datagram(cutter: &mut Cutter<'_>, piece: Piece<'_>, bytes: &[u8], receiver: &mut impl Receiver) {
    if cutter.decoder.is_of_other(bytes) {
        return receiver.unassigned(&Remainder::of(piece, PORT_SHARED), cutter.from);
    }
    let (mut piece, mut bytes) = (piece, bytes);
    loop {
        let wire_bytes = piece.len() as usize;
        cutter.message.clear();
        let (len, fault) = match cutter.decoder.next(Input { bytes, wire_bytes }, cutter.from, cutter.message) {
            Step::Message { len } => (len, None),
            Step::Malformed { len, why } => (len, Some(why)),
            Step::NeedMore { .. } if bytes.len() < wire_bytes => {
                cutter.message.opaque_bytes = piece.len();
                (wire_bytes, None)
            }
            Step::NeedMore { at_least } => (wire_bytes, Some(beyond_datagram(at_least.min(wire_bytes)))),
        };
        let used = u32::try_from(len).unwrap_or(u32::MAX).min(piece.len());
        let (mine, rest) = piece.split(used);
        let captured = bytes.get(..used as usize).unwrap_or(bytes);
        emit(cutter, mine, captured.len(), fault);
        receiver.message(cutter.message, cutter.from, captured);
        if rest.is_empty() || used == 0 {
            return;
        }
        bytes = bytes.get(used as usize..).unwrap_or(&[]);
        piece = rest;
    }
}

const fn beyond_datagram(offset: usize) -> Malformed {
    Malformed { offset, field: "the message runs past the end of its datagram", section: "" }
}

/// Fills in location and bytes of a message that stands in one packet.
#[inline(always)]
fn emit(cutter: &mut Cutter<'_>, mine: Piece<'_>, captured: usize, fault: Option<Malformed>) {
    let message = &mut *cutter.message;
    locate(message, cutter.now, mine);
    message.is_truncated = captured < mine.len() as usize;
    if cutter.wants_frames {
        message.frames.push(mine.frame);
    }
    weigh(message, &mine.share(), mine.len() as usize, fault);
}

#[inline]
fn locate(message: &mut Message, now: (u64, i64), last: Piece<'_>) {
    message.frame = now.0;
    message.frame_first = last.frame_first.min(last.frame);
    message.frame_last = last.frame;
    message.time_ns = now.1;
    message.time_first_ns = last.time_first_ns;
    message.time_last_ns = last.time_ns;
    message.ip_identification = last.ip_identification.map(NonZeroU16::get);
}

/// Counts a message that breaks its format as opaque, and says where it does.
#[cold]
fn refuse(message: &mut Message, len: usize, why: &Malformed) {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let row = &mut message.row;
    (row.security_bytes, row.header_bytes, row.option_bytes, row.payload_bytes, row.opaque_bytes) = (0, 0, 0, 0, len);
    if row.kind.is_empty() {
        row.kind = MALFORMED.id;
    }
    let comma = if why.section.is_empty() { "" } else { ", " };
    row.malformed.set(&format!("offset {}: {}{comma}{}", why.offset, why.field, why.section));
}

/// Sets the byte columns: `headers` is the share of its frames' headers, `len` its own bytes.
#[inline(always)]
fn weigh(message: &mut Message, headers: &Headers, len: usize, fault: Option<Malformed>) {
    if let Some(why) = fault {
        refuse(message, len, &why);
    }
    let row = &mut message.row;
    (row.link_bytes, row.padding_bytes) = (headers.link_bytes, headers.padding_bytes);
    (row.ip_bytes, row.transport_bytes) = (headers.ip_bytes, headers.transport_bytes);
    if headers.compressed_bytes > 0 {
        row.uncompressed_bytes = Some(row.payload_bytes);
        compress(row, headers.compressed_bytes);
    }
    if headers.security_bytes + headers.carrier_bytes > 0 {
        row.security_bytes += headers.security_bytes;
        row.header_bytes += headers.carrier_bytes;
    }
    let around = headers.link_bytes + headers.padding_bytes + headers.ip_bytes + headers.transport_bytes;
    row.frame_bytes = around + row.security_bytes + row.header_bytes + row.option_bytes + row.payload_bytes + row.opaque_bytes;
}

/// Brings a message's own bytes, known as they were before compression, to those that they take on the wire, each part in proportion.
#[cold]
fn compress(row: &mut crate::schema::messages::Row, wire_bytes: u32) {
    let parts = [&mut row.security_bytes, &mut row.header_bytes, &mut row.option_bytes, &mut row.payload_bytes, &mut row.opaque_bytes];
    let total: u64 = parts.iter().map(|part| u64::from(**part)).sum();
    let mut from = 0;
    for part in parts {
        let to = from + u64::from(*part);
        *part = span::share_of(wire_bytes, from, to, total.max(1));
        from = to;
    }
}
