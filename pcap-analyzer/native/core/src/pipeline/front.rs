//! The first half of the pass, in a thread of its own where a capture is not small: frames are read and opened down to their payloads.

use crate::capture::{FileInfo, Source};
use crate::envelope::{Opened, Opener};
use crate::error::Error;
use crate::note::{Notes, TIME_JUMP};
use crate::packet::{OtherFrame, Packet};
use crate::transport::{Seat, StreamTable};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};

/// Packets that travel together from the first half to the second.
#[derive(Debug, Default)]
pub struct Batch {
    /// Each packet, its stream, and where its captured payload stands in `bytes`.
    pub packets: Vec<(Packet, Seat, std::ops::Range<usize>)>,
    /// The payloads.
    pub bytes: Vec<u8>,
}

/// Packets in a batch: few enough to stay in the processor's cache.
const PACKETS: usize = 1024;
/// Payload bytes in a batch.
const BYTES: usize = 1 << 19;
/// Two frames further apart than this in time are worth a note.
const DAY_NS: u64 = 86_400_000_000_000;

impl Batch {
    fn is_full(&self) -> bool {
        self.packets.len() >= PACKETS || self.bytes.len() >= BYTES
    }

    fn push(&mut self, packet: Packet, seat: Seat, payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.packets.push((packet, seat, start..self.bytes.len()));
    }

    /// Makes it empty, to be filled again.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.bytes.clear();
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
            let Some(frame) = self.source.next_frame()? else {
                self.is_ended = true;
                break;
            };
            let jump_ns = self.time_before_ns.replace(frame.time_ns).map_or(0, |before| frame.time_ns.abs_diff(before));
            if jump_ns > DAY_NS {
                self.outcome.notes.add(TIME_JUMP, None, frame.file, frame.number, || format!("{} days", jump_ns / DAY_NS));
            }
            match self.opener.open(&frame, &mut self.outcome.notes) {
                Opened::Packet(packet, payload) => {
                    let seat = self.table.seat(&packet);
                    batch.push(packet, seat, payload);
                }
                Opened::Held => {}
                Opened::Other(other) => count(&mut self.outcome.others, &other),
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
