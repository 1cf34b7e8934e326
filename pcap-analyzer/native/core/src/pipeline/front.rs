//! The first half of the pass, in a thread of its own: frames are read and opened down to their payloads.

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

/// Reads the source to its end and sends batches on; empty ones come back by `spare`. Ends early where nobody takes them any more.
///
/// # Errors
/// Where nothing can be read of any input.
pub fn run(source: &mut dyn Source, batches: &SyncSender<Batch>, spare: &Receiver<Batch>) -> Result<FrontOutcome, Error> {
    let mut outcome = FrontOutcome::default();
    let mut opener = Opener::default();
    let mut table = StreamTable::default();
    let mut batch = Batch::default();
    let mut time_before_ns = None;
    while let Some(frame) = source.next_frame()? {
        let jump_ns = time_before_ns.replace(frame.time_ns).map_or(0, |before: i64| frame.time_ns.abs_diff(before));
        if jump_ns > DAY_NS {
            outcome.notes.add(TIME_JUMP, None, frame.file, frame.number, || format!("{} days", jump_ns / DAY_NS));
        }
        match opener.open(&frame, &mut outcome.notes) {
            Opened::Packet(packet, payload) => {
                let seat = table.seat(&packet);
                batch.push(packet, seat, payload);
            }
            Opened::Held => {}
            Opened::Other(other) => count(&mut outcome.others, &other),
        }
        if batch.is_full() {
            let next = spare.try_recv().unwrap_or_default();
            if batches.send(std::mem::replace(&mut batch, next)).is_err() {
                break;
            }
        }
    }
    let _ = batches.send(batch);
    for unfinished in opener.unfinished(&mut outcome.notes) {
        let (frames, bytes) = outcome.others.entry(unfinished.protocol).or_default();
        *frames += unfinished.frames;
        *bytes += unfinished.frame_bytes;
    }
    outcome.files = source.files();
    Ok(outcome)
}

fn count(others: &mut Others, other: &OtherFrame) {
    let (frames, bytes) = others.entry(other.protocol).or_default();
    *frames += u64::from(other.frames);
    *bytes += other.frame_bytes;
}
