//! The first half of the pass, in a thread of its own where a capture is not small: frames are read and opened down to their payloads.

use crate::capture::{FileInfo, Frame, Source};
use crate::envelope::{Opened, Opener};
use crate::error::Error;
use crate::note::{Notes, TIME_JUMP};
use crate::packet::{OtherFrame, Packet, TcpHeader, Transport};
use crate::transport::{Seat, StreamTable};
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::mpsc::{Receiver, SyncSender};

/// Packets that travel together from the first half to the second.
#[derive(Debug, Default)]
pub struct Batch {
    /// Room for packets; it is written over again and again.
    packets: Vec<Arrival>,
    /// How many there are now.
    count: usize,
    /// The payloads.
    pub bytes: Vec<u8>,
    /// Packets that ICMP refuses.
    pub refused: Vec<Refused>,
}

/// A packet that ICMP refuses.
#[derive(Debug)]
pub struct Refused {
    /// Number of its stream among all streams.
    pub place: u32,
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
    /// Its stream.
    pub seat: Seat,
    /// What tells it from the packet before it, see [`digest`].
    pub digest: u64,
    /// Where its captured payload stands in the batch's bytes.
    pub range: std::ops::Range<usize>,
}

/// A hash of what two packets have alike where one is a copy that the capture took of the other: IP identification, TCP header, the payload's length
/// and beginning.
#[inline]
fn digest(packet: &Packet, payload: &[u8]) -> u64 {
    let header = match packet.transport {
        Transport::Tcp(header) => header,
        Transport::Udp => TcpHeader::default(),
    };
    let mut hasher = FxHasher::default();
    hasher.write_u64(u64::from(header.sequence) << 32 | u64::from(header.acknowledgment));
    hasher.write_u64(u64::from(header.flags) << 32 | u64::from(header.window) << 16 | u64::from(header.maximum_segment_bytes.unwrap_or(0)));
    hasher.write_u64(u64::from(packet.payload_bytes) << 16 | u64::from(packet.ip_identification.unwrap_or(0)));
    hasher.write(payload.get(..DIGESTED).unwrap_or(payload));
    hasher.finish()
}

/// Bytes at a payload's start that count for its packet's digest.
const DIGESTED: usize = 16;
/// Packets in a batch: few enough to stay in the processor's cache.
const PACKETS: usize = 256;
/// Payload bytes in a batch.
const BYTES: usize = 1 << 17;
/// Two frames further apart than this in time are worth a note.
const DAY_NS: u64 = 86_400_000_000_000;

impl Batch {
    /// The packets.
    pub fn packets(&self) -> &[Arrival] {
        self.packets.get(..self.count).unwrap_or_default()
    }

    const fn is_full(&self) -> bool {
        self.count >= PACKETS || self.bytes.len() >= BYTES || self.refused.len() >= PACKETS
    }

    /// Opens a frame to where the next packet stands.
    #[inline]
    fn open(&mut self, frame: &Frame<'_>, opener: &mut Opener, table: &mut StreamTable, notes: &mut Notes) -> Option<OtherFrame> {
        if self.count == self.packets.len() {
            self.packets.push(Arrival::default());
        }
        let arrival = self.packets.get_mut(self.count)?;
        match opener.open(frame, notes, &mut arrival.packet) {
            Opened::Packet(payload) => {
                arrival.seat = table.seat(&arrival.packet);
                arrival.digest = digest(&arrival.packet, payload);
                arrival.range.start = self.bytes.len();
                self.bytes.extend_from_slice(payload);
                arrival.range.end = self.bytes.len();
                self.count += 1;
                None
            }
            Opened::Held => None,
            Opened::Other(other) => Some(other),
        }
    }

    /// Makes it empty, to be filled again.
    pub fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
        self.refused.clear();
    }
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
    opener: Opener,
    table: StreamTable,
    outcome: FrontOutcome,
    time_before_ns: Option<i64>,
    is_ended: bool,
}

impl Front {
    /// At the start of a source.
    pub fn new(source: Box<dyn Source>) -> Self {
        Self {
            source,
            opener: Opener::default(),
            table: StreamTable::default(),
            outcome: FrontOutcome::default(),
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

    /// Fills an empty batch. None where the source has ended.
    ///
    /// # Errors
    /// Where nothing can be read of any input.
    pub fn fill(&mut self, mut batch: Batch) -> Result<Option<Batch>, Error> {
        if self.is_ended {
            return Ok(None);
        }
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
            let Some(other) = batch.open(frame, &mut self.opener, &mut self.table, &mut self.outcome.notes) else { continue };
            count(&mut self.outcome.others, &other);
            let Some(refusal) = other.refuses else { continue };
            if let Some(place) = self.table.find(&refusal.source, &refusal.destination, refusal.is_tcp) {
                batch.refused.push(Refused { place, why: refusal.why, file: frame.file, frame: frame.number });
            }
        }
        Ok(Some(batch))
    }

    /// Fills batches to the source's end and sends them on; empty ones come back by `spare`. Ends early where nobody takes them any more.
    ///
    /// # Errors
    /// Where nothing can be read of any input.
    pub fn run(mut self, batches: &SyncSender<Batch>, spare: &Receiver<Batch>) -> Result<FrontOutcome, Error> {
        while let Some(batch) = self.fill(spare.try_recv().unwrap_or_default())? {
            if batches.send(batch).is_err() {
                break;
            }
        }
        Ok(self.finish())
    }

    /// What it knows when the capture has ended.
    pub fn finish(self) -> FrontOutcome {
        let Self { source, mut opener, mut outcome, .. } = self;
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
        let refused = (0..).take_while(|&place| {
            let has_room = !batch.is_full();
            batch.refused.push(Refused { place, why: "port unreachable", file: 0, frame: 1 });
            has_room
        });

        assert_eq!(PACKETS, refused.count());
    }
}
