//! Fragments back into datagrams (RFC 791 §3.2, RFC 8200 §4.5, RFC 4944 §5.3), with bounds on count, memory and time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::note::{Notes, CAPTURED_TWICE, FRAGMENT_MISSING, FRAGMENT_OVERLAP, LINK_RETRANSMISSION};
use crate::packet::{Account, Address, COPY_NS};

/// How long fragments wait for the others, in capture time (RFC 8200 §4.5, RFC 4944 §5.3).
const PATIENCE_NS: i64 = 60_000_000_000;
/// Datagrams that may be waiting; the oldest goes first.
const MOST_DATAGRAMS: usize = 4096;
/// Captured bytes that may be waiting.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Fragments of one datagram: 64 KiB in the smallest fragments that a link of 68 bytes (RFC 791 §3.2) makes, and some more.
const MOST_PIECES: usize = 2048;
/// Copies of a datagram that wait at once, where the capture took its fragments more than once: by so many interfaces a packet hardly goes.
const MOST_COPIES: usize = 4;
/// No datagram that is fragmented can be longer.
const LONGEST: u32 = 65_535 + 40;

/// What fragments of one datagram have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// IPv4: addresses, protocol and identification.
    V4(Address, Address, u8, u32),
    /// IPv6: addresses and identification.
    V6(Address, Address, u32),
    /// 6LoWPAN: link addresses, datagram tag and datagram size.
    LowPan([u8; 8], [u8; 8], u16, u16),
}

impl Key {
    const fn protocol(&self) -> &'static str {
        match self {
            Self::V4(..) => "ip",
            Self::V6(..) => "ipv6",
            Self::LowPan(..) => "6lowpan",
        }
    }
}

/// One fragment as it arrives.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Which datagram it belongs to.
    pub key: Key,
    /// Where it begins in the datagram, in bytes.
    pub offset: u32,
    /// Length of its data on the wire.
    pub wire_bytes: u32,
    /// The captured part of its data.
    pub captured: &'a [u8],
    /// Length of the datagram, where this fragment tells it.
    pub total: Option<u32>,
    /// Protocol of the datagram's content; that of the first fragment counts.
    pub protocol: u8,
    /// Input, number and time of its frame.
    pub file: u16,
    /// Frame number.
    pub frame: u64,
    /// Capture time in nanoseconds.
    pub time_ns: i64,
    /// Whether the link layer sent its frame again.
    pub is_sent_again: bool,
}

/// A datagram whose fragments are all there.
#[derive(Debug)]
pub struct Whole {
    /// Its bytes, up to the first one that was not captured.
    pub bytes: Vec<u8>,
    /// Its length.
    pub wire_bytes: u32,
    /// Protocol of its content.
    pub protocol: u8,
}

/// What became of a fragment.
#[derive(Debug)]
pub enum Verdict {
    /// It waits for the others, and its frame with it.
    Held,
    /// It was the last one missing.
    Whole(Whole),
    /// It cannot be part of a datagram.
    Refused,
}

/// Frames whose datagrams never became whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// What was fragmented: "ip", "ipv6", "6lowpan".
    pub protocol: &'static str,
    /// How many frames.
    pub frames: u64,
    /// Their length on the wire in bytes.
    pub frame_bytes: u64,
}

#[derive(Debug)]
struct Piece {
    range: Range<u32>,
    time_ns: i64,
    captured: Vec<u8>,
}

#[derive(Debug)]
struct Datagram {
    /// In order, without overlap.
    pieces: Vec<Piece>,
    covered: u32,
    total: Option<u32>,
    protocol: u8,
    account: Account,
    file: u16,
    frame_last: u64,
    /// Whether it was begun as a copy of another one.
    is_copy: bool,
}

/// A datagram that waits, with the copies that the capture took of it: each is put together by itself, so that the copies are told from the datagram by
/// what tells any packets that were captured twice.
#[derive(Debug)]
struct Waiting {
    serial: u64,
    copies: Vec<Datagram>,
}

/// The fragments that wait.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: FxHashMap<Key, Waiting>,
    /// Datagrams in order of their first fragment; those that are gone stay until they reach the front.
    order: VecDeque<(i64, u64, Key)>,
    bytes: usize,
    serial: u64,
    unfinished: BTreeMap<&'static str, Unfinished>,
}

impl Fragments {
    /// Takes a fragment in. `account` is that of its frame; where the datagram is whole, it becomes that of all its frames.
    pub fn add(&mut self, arrival: &Arrival<'_>, account: &mut Account, notes: &mut Notes) -> Verdict {
        let end = arrival.offset.saturating_add(arrival.wire_bytes);
        if end > LONGEST || arrival.wire_bytes == 0 {
            return Verdict::Refused;
        }
        self.make_room(arrival, notes);
        if arrival.is_sent_again {
            notes.add(LINK_RETRANSMISSION, None, arrival.file, arrival.frame, String::new);
            if !self.waiting.contains_key(&arrival.key) {
                return Verdict::Refused;
            }
        }
        if self.waiting.get(&arrival.key).is_some_and(|waiting| waiting.copies.iter().any(|datagram| datagram.is_of_another(arrival))) {
            self.give_up(arrival.key, notes);
        }
        self.serial += 1;
        let waiting = match self.waiting.entry(arrival.key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.order.push_back((arrival.time_ns, self.serial, arrival.key));
                entry.insert(Waiting { serial: self.serial, copies: Vec::new() })
            }
        };
        let place = waiting.place(arrival);
        let Some(datagram) = waiting.copies.get_mut(place) else { return Verdict::Refused };
        let before = datagram.covered;
        self.bytes += datagram.insert(arrival);
        let overlap = arrival.wire_bytes - (datagram.covered - before);
        if overlap > 0 {
            account.ip += i64::from(overlap);
            if !arrival.is_sent_again {
                notes.add(FRAGMENT_OVERLAP, None, arrival.file, arrival.frame, String::new);
            }
        }
        if datagram.is_whole() {
            return self.finish(arrival.key, place, account);
        }
        datagram.hold(account, arrival);
        if datagram.contradicts_itself() {
            self.give_up(arrival.key, notes);
        }
        Verdict::Held
    }

    /// Gives up all that still waits, and tells all that was ever given up.
    pub fn unfinished(&mut self, notes: &mut Notes) -> Vec<Unfinished> {
        while let Some((_, serial, key)) = self.order.pop_front() {
            if self.waiting.get(&key).is_some_and(|waiting| waiting.serial == serial) {
                self.give_up(key, notes);
            }
        }
        std::mem::take(&mut self.unfinished).into_values().collect()
    }

    fn finish(&mut self, key: Key, place: usize, account: &mut Account) -> Verdict {
        let Entry::Occupied(mut entry) = self.waiting.entry(key) else { return Verdict::Refused };
        let datagram = entry.get_mut().copies.remove(place);
        if entry.get().copies.is_empty() {
            entry.remove();
        }
        self.bytes -= datagram.captured_bytes();
        let whole = datagram.join();
        account.follow(datagram.account);
        Verdict::Whole(whole)
    }

    /// Gives up what waits too long, and the oldest where there is no room.
    fn make_room(&mut self, arrival: &Arrival<'_>, notes: &mut Notes) {
        while let Some(&(since, serial, key)) = self.order.front() {
            let is_gone = self.waiting.get(&key).is_none_or(|waiting| waiting.serial != serial);
            let is_late = arrival.time_ns.saturating_sub(since) > PATIENCE_NS;
            let is_full = self.waiting.len() >= MOST_DATAGRAMS || self.bytes + arrival.captured.len() > MOST_BYTES;
            if !is_gone && !is_late && !is_full {
                return;
            }
            self.order.pop_front();
            if !is_gone {
                self.give_up(key, notes);
            }
        }
    }

    fn give_up(&mut self, key: Key, notes: &mut Notes) {
        let Some(waiting) = self.waiting.remove(&key) else { return };
        let protocol = key.protocol();
        let sum = self.unfinished.entry(protocol).or_insert(Unfinished { protocol, frames: 0, frame_bytes: 0 });
        for datagram in waiting.copies {
            self.bytes -= datagram.captured_bytes();
            sum.frames += datagram.account.earlier.len() as u64;
            sum.frame_bytes += datagram.account.frame_bytes;
            let what = if datagram.is_copy { CAPTURED_TWICE } else { FRAGMENT_MISSING };
            notes.add(what, None, datagram.file, datagram.frame_last, String::new);
        }
    }
}

impl Waiting {
    /// Which copy a fragment belongs to: the first one that has not got it.
    fn place(&mut self, arrival: &Arrival<'_>) -> usize {
        let lacking = self.copies.iter().position(|datagram| !datagram.holds(arrival));
        if lacking.is_none() && self.copies.len() < MOST_COPIES {
            self.copies.push(Datagram::new(!self.copies.is_empty()));
        }
        lacking.unwrap_or(self.copies.len() - 1)
    }
}

impl Datagram {
    fn new(is_copy: bool) -> Self {
        let (pieces, account) = Default::default();
        Self { pieces, covered: 0, total: None, protocol: 0, account, file: 0, frame_last: 0, is_copy }
    }

    /// The fragment that came of the very same part.
    fn same_part(&self, arrival: &Arrival<'_>) -> Option<&Piece> {
        let at = self.pieces.partition_point(|piece| piece.range.end <= arrival.offset);
        self.pieces.get(at).filter(|piece| piece.range == (arrival.offset..arrival.offset + arrival.wire_bytes))
    }

    /// Whether it has the same fragment already, captured just before or after.
    fn holds(&self, arrival: &Arrival<'_>) -> bool {
        let is_same = |piece: &Piece| piece.captured == arrival.captured && piece.time_ns.abs_diff(arrival.time_ns) < COPY_NS;
        self.same_part(arrival).is_some_and(is_same)
    }

    /// Whether the fragment is of a later datagram that has the identification of this one: the very same part has another content there.
    fn is_of_another(&self, arrival: &Arrival<'_>) -> bool {
        let is_other = |piece: &Piece| piece.captured.len() == arrival.captured.len() && piece.captured != arrival.captured;
        self.same_part(arrival).is_some_and(is_other)
    }

    /// Puts the fragment's data into the gaps that are left: what came first counts. Returns the captured bytes that were kept.
    fn insert(&mut self, arrival: &Arrival<'_>) -> usize {
        if arrival.offset == 0 {
            self.protocol = arrival.protocol;
        }
        self.total = self.total.or(arrival.total);
        let end = arrival.offset + arrival.wire_bytes;
        let (mut at, mut kept) = (arrival.offset, 0);
        let mut index = self.pieces.partition_point(|piece| piece.range.end <= at);
        while at < end {
            let (gap_end, next) = match self.pieces.get(index) {
                Some(piece) => (piece.range.start.min(end), piece.range.end),
                None => (end, end),
            };
            if at < gap_end {
                let from = (at - arrival.offset) as usize;
                let until = ((gap_end - arrival.offset) as usize).min(arrival.captured.len());
                let captured = arrival.captured.get(from..until).unwrap_or(&[]).to_vec();
                kept += captured.len();
                self.covered += gap_end - at;
                self.pieces.insert(index, Piece { range: at..gap_end, time_ns: arrival.time_ns, captured });
                index += 1;
            }
            at = next.max(gap_end);
            index += 1;
        }
        kept
    }

    fn hold(&mut self, account: &mut Account, arrival: &Arrival<'_>) {
        let mut account = std::mem::take(account);
        account.earlier.push(arrival.frame);
        let before = std::mem::take(&mut self.account);
        account.follow(before);
        self.account = account;
        self.file = arrival.file;
        self.frame_last = arrival.frame;
    }

    fn is_whole(&self) -> bool {
        self.total == Some(self.covered) && self.pieces.last().is_some_and(|piece| piece.range.end == self.covered)
    }

    /// Data behind the datagram's end, or more pieces than it can have.
    fn contradicts_itself(&self) -> bool {
        let end = self.pieces.last().map_or(0, |piece| piece.range.end);
        self.total.is_some_and(|total| end > total) || self.account.earlier.len() >= MOST_PIECES
    }

    fn captured_bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.captured.len()).sum()
    }

    /// The bytes in order, as far as they were captured.
    fn join(&self) -> Whole {
        let mut bytes = Vec::with_capacity(self.captured_bytes());
        for piece in &self.pieces {
            bytes.extend_from_slice(&piece.captured);
            if bytes.len() < piece.range.end as usize {
                break;
            }
        }
        Whole { bytes, wire_bytes: self.covered, protocol: self.protocol }
    }
}
