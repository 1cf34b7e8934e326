//! The first half of the pass: frames are read and opened down to their payloads.

use super::routes::Routes;
use crate::capture::{FileInfo, Frame, Source};
use crate::envelope::{Opened, Opener};
use crate::error::Error;
use crate::note::{Notes, TIME_JUMP};
use crate::packet::{OtherFrame, Packet, TcpHeader, Transport};
use crate::transport::{Seat, StreamTable};
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::num::NonZeroU16;

/// Packets that travel together from the first half to the second, where each thread takes its part of them.
#[derive(Debug, Default)]
pub struct Batch {
    /// Room for packets; it is written over again and again.
    packets: Vec<Arrival>,
    /// How many there are now.
    count: usize,
    /// Where those of each part stand.
    parts: Vec<Vec<u32>>,
    /// The payloads.
    bytes: Vec<u8>,
    /// Packets that ICMP refuses.
    refused: Vec<Refused>,
    /// Number of the frame that the first half has come to.
    pub frame: u64,
    /// Number of the first packet behind these, among all packets.
    pub until: u64,
}

/// A packet that ICMP refuses.
#[derive(Debug)]
pub struct Refused {
    /// Its stream.
    pub seat: Seat,
    /// Why.
    pub why: &'static str,
    /// Which input the refusal came from.
    pub file: u16,
    /// Its frame.
    pub frame: u64,
}

/// A packet and what the first half knows of it.
#[derive(Debug, Default)]
pub struct Arrival {
    /// The packet.
    pub packet: Packet,
    /// Its number among all packets.
    pub order: u64,
    /// Its stream.
    pub seat: Seat,
    /// What tells it from the packet before it, see [`digest`].
    pub digest: u64,
    /// Where its captured payload stands in the batch's bytes.
    pub range: std::ops::Range<usize>,
}

/// A hash of what two packets have alike where one is a copy that the capture took of the other: IP identification, TCP header, the payload's length
/// and beginning. Of a datagram without IP identification it is the whole payload: nothing else tells it from one sent right behind it.
#[inline]
fn digest(packet: &Packet, payload: &[u8]) -> u64 {
    let (header, digested) = match packet.transport {
        Transport::Tcp(header) => (header, DIGESTED),
        Transport::Udp if packet.is_identified() => (TcpHeader::default(), DIGESTED),
        Transport::Udp => (TcpHeader::default(), payload.len()),
    };
    let mut hasher = FxHasher::default();
    hasher.write_u64(u64::from(header.sequence) << 32 | u64::from(header.acknowledgment));
    hasher.write_u64(u64::from(header.flags) << 32 | u64::from(header.window) << 16 | u64::from(header.maximum_segment_bytes.unwrap_or(0)));
    hasher.write_u64(u64::from(packet.payload_bytes) << 16 | u64::from(packet.ip_identification.map_or(0, NonZeroU16::get)));
    hasher.write(payload.get(..digested).unwrap_or(payload));
    hasher.finish()
}

/// Bytes at a payload's start that count for its packet's digest, as a rule.
const DIGESTED: usize = 16;
/// Packets in a batch, for each part: few enough to stay in the processor's cache.
const PACKETS: usize = 512;
/// Payload bytes in a batch.
const BYTES: usize = 1 << 17;
/// Two frames further apart than this in time are worth a note.
const DAY_NS: u64 = 86_400_000_000_000;

impl Batch {
    /// Where the packets of a part stand.
    pub fn places(&self, part: u32) -> &[u32] {
        self.parts.get(part as usize).map_or(&[], Vec::as_slice)
    }

    /// The packets that stand in these places, with their payloads.
    pub fn packets<'a>(&'a self, places: &'a [u32]) -> impl Iterator<Item = (&'a Arrival, &'a [u8])> + Clone {
        let arrivals = places.iter().filter_map(|&place| self.packets.get(place as usize));
        arrivals.map(|arrival| (arrival, self.bytes.get(arrival.range.clone()).unwrap_or(&[])))
    }

    /// The packets of a part that ICMP refuses.
    pub fn refused(&self, part: u32) -> impl Iterator<Item = &Refused> {
        self.refused.iter().filter(move |refused| refused.seat.part == part)
    }

    fn is_full(&self) -> bool {
        let packets = PACKETS * self.parts.len();
        self.count >= packets || self.bytes.len() >= BYTES || self.refused.len() >= packets
    }

    /// Opens a frame to where the next packet stands.
    #[inline]
    fn open(&mut self, frame: &Frame<'_>, opening: &mut Opening, notes: &mut Notes) -> Option<OtherFrame> {
        if self.count == self.packets.len() {
            self.packets.push(Arrival::default());
        }
        let arrival = self.packets.get_mut(self.count)?;
        match opening.opener.open(frame, notes, &mut arrival.packet) {
            Opened::Packet(payload) => {
                let packet = &arrival.packet;
                opening.table.seat(packet, || opening.routes.part(packet, payload), &mut arrival.seat);
                arrival.digest = digest(packet, payload);
                arrival.order = self.until;
                arrival.range.start = self.bytes.len();
                self.bytes.extend_from_slice(payload);
                arrival.range.end = self.bytes.len();
                self.parts.get_mut(arrival.seat.part as usize)?.push(u32::try_from(self.count).ok()?);
                self.count += 1;
                self.until += 1;
                None
            }
            Opened::Held => None,
            Opened::Other(other) => Some(other),
        }
    }

    /// Makes it empty, to be filled again behind packets up to `until`. Room that has to grow is moved and fetched twice, so there is enough from the start.
    fn clear(&mut self, parts: u32, until: u64) {
        self.count = 0;
        self.parts.resize(parts as usize, Vec::new());
        self.parts.iter_mut().for_each(Vec::clear);
        self.packets.reserve_exact((PACKETS * parts as usize).saturating_sub(self.packets.len()));
        self.bytes.clear();
        self.bytes.reserve_exact(BYTES);
        self.refused.clear();
        self.until = until;
    }
}

/// What opens frames, and knows the streams.
struct Opening {
    opener: Opener,
    table: StreamTable,
    routes: Routes,
}

/// Frames that end below or beside UDP and TCP, by protocol: frames and bytes on the wire.
pub type Others = BTreeMap<&'static str, (u64, u64)>;

/// What the first half knows when the capture has ended.
#[derive(Debug, Default)]
pub struct FrontOutcome {
    /// The inputs.
    pub files: Vec<FileInfo>,
    /// Its notes.
    pub notes: Notes,
    /// Frames that hold no datagram or segment.
    pub others: Others,
}

/// The first half at work.
pub struct Front {
    source: Box<dyn Source>,
    opening: Opening,
    outcome: FrontOutcome,
    /// Packets so far.
    packets: u64,
    time_before_ns: Option<i64>,
    is_ended: bool,
}

impl Front {
    /// At the start of a source.
    pub fn new(source: Box<dyn Source>, routes: Routes) -> Self {
        Self {
            source,
            opening: Opening { opener: Opener::default(), table: StreamTable::default(), routes },
            outcome: FrontOutcome::default(),
            packets: 0,
            time_before_ns: None,
            is_ended: false,
        }
    }

    /// What is known of the inputs by now.
    pub fn files(&self) -> Vec<FileInfo> {
        self.source.files()
    }

    /// Whether the source has ended.
    pub const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Fills a batch anew. None where the source has ended.
    ///
    /// # Errors
    /// Where nothing can be read of any input.
    pub fn fill(&mut self, mut batch: Batch) -> Result<Option<Batch>, Error> {
        if self.is_ended {
            return Ok(None);
        }
        batch.clear(self.opening.routes.parts(), self.packets);
        while !batch.is_full() {
            let next = self.source.next_frame();
            let frame = match &next {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.is_ended = true;
                    break;
                }
                Err(error) => return Err(error.clone()),
            };
            let jump_ns = self.time_before_ns.replace(frame.time_ns).map_or(0, |before| frame.time_ns.abs_diff(before));
            if jump_ns > DAY_NS {
                self.outcome.notes.add(TIME_JUMP, None, frame.file, frame.number, || format!("{} days", jump_ns / DAY_NS));
            }
            batch.frame = frame.number;
            let Some(other) = batch.open(frame, &mut self.opening, &mut self.outcome.notes) else { continue };
            count(&mut self.outcome.others, &other);
            let Some(refusal) = other.refuses else { continue };
            if let Some(seat) = self.opening.table.find(&refusal.source, &refusal.destination, refusal.is_tcp) {
                batch.refused.push(Refused { seat, why: refusal.why, file: frame.file, frame: frame.number });
            }
        }
        self.packets = batch.until;
        Ok(Some(batch))
    }

    /// What it knows when the capture has ended.
    pub fn finish(self) -> FrontOutcome {
        let Self { source, opening: Opening { mut opener, .. }, mut outcome, .. } = self;
        for unfinished in opener.unfinished(&mut outcome.notes) {
            let (frames, bytes) = outcome.others.entry(unfinished.protocol).or_default();
            *frames += unfinished.frames;
            *bytes += unfinished.frame_bytes;
        }
        outcome.files = source.files();
        outcome
    }
}

fn count(others: &mut Others, other: &OtherFrame) {
    let (frames, bytes) = others.entry(other.protocol).or_default();
    *frames += u64::from(other.frames);
    *bytes += other.frame_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_where_frames_only_refuse_packets_too() {
        let mut batch = Batch::default();
        batch.clear(1, 0);
        let refused = (0..).take_while(|&place| {
            let has_room = !batch.is_full();
            batch.refused.push(Refused { seat: Seat { place, ..Seat::default() }, why: "port unreachable", file: 0, frame: 1 });
            has_room
        });

        assert_eq!(PACKETS, refused.count());
    }
}
