//! The one pass: source, rooms in order, sinks that were asked for. Of a capture that is not small frames are read and opened in one thread, messages
//! found in another, and sums added up in a third.

mod back;
mod books;
mod desk;
mod front;
mod single;
pub mod tables;

pub use front::Others;
pub use single::decode;

use crate::capture::{self, FileInfo, Input, Source};
use crate::error::{Error, ErrorKind};
use crate::message::Side;
use crate::note::{self, Notes};
use crate::pdml::Pdml;
use crate::protocols::{DecodeAs, Decoding};
use crate::schema::{captures, exchanges, messages};
use crate::sessions::{Choices, Sessions};
use back::Back;
use books::Post;
use front::{Batch, Front, FrontOutcome};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::Arc;

/// What the user chose.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rules of `-d`; later ones win.
    pub decode_as: Vec<DecodeAs>,
    /// About counting.
    pub choices: Choices,
    /// What decoders cannot see in the capture.
    pub decoding: Decoding,
    /// Whether rows of messages are wanted.
    pub wants_messages: bool,
    /// Whether rows of exchanges are wanted.
    pub wants_exchanges: bool,
    /// Whether nobody asks for sums: the outcome then has no sessions, unless they have to be counted for what is in the rows.
    pub wants_no_sums: bool,
    /// Whether payloads may be shown.
    pub show_payload: bool,
    /// Whether user names may be shown.
    pub show_secrets: bool,
    /// tshark and its arguments, where it is to open what is encrypted; it writes PDML to standard output.
    pub tshark: Option<Vec<String>>,
    /// Whether only the frames count that tshark writes: it was given a display filter.
    pub is_filtered: bool,
    /// The part of the rows that is wanted, where several passes share them.
    pub share: Option<Share>,
    /// Number of the frame that the pass has come to, for whoever shows progress.
    pub frame: Arc<AtomicU64>,
}

/// One of several parts of a capture's messages and exchanges: those of every so many'th session. Each pass reads all of the capture, so that numbers,
/// and links between sessions, are those of a pass that is not shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: u32,
    count: u32,
}

impl Share {
    /// Part `index`, from 0, of `count` parts, where there is such a one.
    #[must_use]
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count {
            Some(Self { index, count })
        } else {
            None
        }
    }

    const fn has(self, session: u32) -> bool {
        session % self.count == self.index
    }
}

impl Options {
    /// Whether rows of a session are for this pass.
    #[inline]
    fn shares(&self, session: u32) -> bool {
        self.share.is_none_or(|share| share.has(session))
    }

    /// Whether rows of a session's messages are wanted.
    #[inline]
    fn wants_messages_of(&self, session: u32) -> bool {
        self.wants_messages && self.shares(session)
    }
}

/// Takes the rows that were asked for.
pub trait Sink {
    /// A message.
    fn message(&mut self, row: &messages::Row);
    /// An exchange that ended.
    fn exchange(&mut self, row: &exchanges::Row);
    /// Whether nobody takes rows any more, so that the pass may stop.
    fn is_closed(&self) -> bool {
        false
    }
}

/// A sink for passes that ask for no rows.
#[derive(Debug, Default)]
pub struct NoRows;

impl Sink for NoRows {
    fn message(&mut self, _: &messages::Row) {}
    fn exchange(&mut self, _: &exchanges::Row) {}
}

/// What a pass found.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The inputs.
    pub files: Vec<FileInfo>,
    /// Sums by session.
    pub sessions: Sessions,
    /// What could not be seen.
    pub notes: Notes,
    /// Messages.
    pub messages: u64,
    /// Frames without a datagram or segment, by protocol; and those of streams whose protocol is not known, as "udp" and "tcp".
    pub others: Others,
    /// Ports of the streams whose protocol is not known, by transport and lower port: packets, bytes on the wire.
    pub unmatched_ports: BTreeMap<(&'static str, u16), (u64, u64)>,
}

/// Batches on their way from the first thread to the second. A capture of no more packets than are in so many is read in one thread: others would not
/// be at work before it ends.
const BATCHES: usize = 16;
/// Batches on their way to the third. Few and large ones: a thread that sleeps and is woken for each costs more than it gains.
const POSTED: usize = 2;

/// Reads captures from one end to the other.
///
/// # Errors
/// Where nothing can be read of any input.
pub fn run(inputs: Vec<Input>, options: &Options, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    run_source(capture::open(inputs)?, options, sink)
}

/// The same from a source that is open.
///
/// # Errors
/// Where nothing can be read of any input.
pub fn run_source(source: Box<dyn Source>, options: &Options, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let mut front = Front::new(source);
    let mut begun = Vec::new();
    while begun.len() < BATCHES {
        let Some(batch) = front.fill(Batch::default())? else { break };
        begun.push(batch);
    }
    let names = front.files().iter().map(|file| Arc::from(file.path.as_str())).collect();
    let pdml = options.tshark.as_deref().map(Pdml::start).transpose().map_err(|error| no_tshark(options, &error))?;
    let mut back = Back::new(options, names, sink, pdml);
    begun.iter().for_each(|batch| back.take(batch));
    drop(begun);
    let front = if front.is_ended() || back.is_closed() { front.finish() } else { in_threads(front, &mut back, options)? };
    let mut outcome = back.finish()?;
    outcome.join(front);
    Ok(outcome)
}

/// The rest of a capture: one thread reads, this one finds messages, and where nobody wants their rows another one keeps the books.
fn in_threads(front: Front, back: &mut Back<'_>, options: &Options) -> Result<FrontOutcome, Error> {
    let (batches, arriving) = sync_channel::<Batch>(BATCHES);
    let (back_again, spare) = channel::<Batch>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || front.run(&batches, &spare));
        let (postings, posted) = sync_channel(POSTED);
        let (emptied, spare) = channel();
        let sessions = if options.wants_messages { None } else { back.books().hand_over(Post { batches: postings, spare }) };
        let keeper = sessions.map(|sessions| scope.spawn(move || books::keep(sessions, &posted, &emptied)));
        for mut batch in arriving {
            back.take(&batch);
            batch.clear();
            let _ = back_again.send(batch);
            if back.is_closed() {
                break;
            }
        }
        if let Some(keeper) = keeper {
            back.books().flush();
            back.books().take_back(keeper.join().map_err(|_| broken())?);
        }
        reader.join().unwrap_or_else(|_| Err(broken()))
    })
}

fn broken() -> Error {
    failed(ErrorKind::Damaged, String::new(), "a thread failed".to_owned(), "report this with the capture")
}

fn no_tshark(options: &Options, error: &std::io::Error) -> Error {
    let program = options.tshark.iter().flatten().find(|word| !word.contains('=')).cloned().unwrap_or_default();
    failed(
        ErrorKind::Tool,
        program,
        format!("cannot be started: {error}"),
        "install Wireshark's tshark 4.0 or newer, or use --engine native",
    )
}

const fn failed(kind: ErrorKind, path: String, cause: String, remedy: &'static str) -> Error {
    Error { kind, path, offset: None, frame: None, cause, remedy }
}

impl Outcome {
    /// Takes in what the first half knows.
    fn join(&mut self, front: FrontOutcome) {
        for (protocol, (frames, bytes)) in front.others {
            let sums = self.others.entry(protocol).or_default();
            sums.0 += frames;
            sums.1 += bytes;
        }
        self.notes.absorb(front.notes);
        for (number, file) in front.files.iter().enumerate() {
            self.note_file(u16::try_from(number).unwrap_or(u16::MAX), file);
        }
        self.files = front.files;
    }

    fn note_file(&mut self, number: u16, file: &FileInfo) {
        let mut add = |kind, count: u64, detail: String| {
            if count > 0 {
                self.notes.add(kind, None, number, file.frames, || detail);
            }
        };
        add(note::SNAP_LENGTH, file.cut_frames, format!("{} frames", file.cut_frames));
        let dropped = file.dropped_frames.unwrap_or(0);
        add(note::DROPPED, dropped, format!("{dropped} frames"));
        add(note::TIME_BACKWARDS, file.frames_back_in_time, format!("{} frames", file.frames_back_in_time));
        if let Some(damage) = &file.damage {
            let kind = if damage.kind == crate::error::ErrorKind::CutShort { note::CUT_SHORT } else { note::DAMAGED };
            add(kind, 1, damage.to_string());
        }
    }
}

impl Outcome {
    /// Notes on what the sums of each session show.
    fn note_sessions(&mut self) {
        for session in self.sessions.all() {
            let row = &session.row;
            let [c2s, s2c] = &session.directions;
            let (main, other) = if session.data_sender() == Side::Client { (c2s, s2c) } else { (s2c, c2s) };
            let has_data = main.data_messages > 0;
            let is_secured = row.time1_security_ns.is_some();
            let remarks = [
                (note::NO_DATA, !has_data && !is_secured, String::new()),
                (note::NO_OPENING, has_data && !is_secured && !row.is_opening_seen, String::new()),
                (note::NO_LAST_ACK, has_data && main.is_ack_expected() && main.data_last_ack_ns.is_none(), String::new()),
                (note::BOTH_WAYS, other.data_messages > 0, format!("{} the other way", other.data_messages)),
                (note::UNANSWERED, row.exchanges_unanswered > 0, format!("{} exchanges", row.exchanges_unanswered)),
                (note::UNDELIVERED, session.undelivered > 0, format!("{} publications", session.undelivered)),
                (note::STOPPED, row.messages_after_stop > 0, format!("{} messages", row.messages_after_stop)),
            ];
            for (kind, _, detail) in remarks.into_iter().filter(|(_, applies, _)| *applies) {
                self.notes.add(kind, Some(row.session), 0, row.frame_last, || detail);
            }
        }
    }
}

/// A capture file's row.
#[must_use]
pub fn capture_row(file: &FileInfo) -> captures::Row {
    let mut row = captures::Row {
        file: Some(Arc::from(file.path.as_str())),
        frames: file.frames,
        frame_bytes: file.frame_bytes,
        captured_bytes: file.captured_bytes,
        cut_frames: file.cut_frames,
        time_first_ns: file.first_time_ns,
        time_last_ns: file.last_time_ns,
        time_resolution_ns: file.time_resolution_ns,
        dropped_frames: file.dropped_frames,
        frames_back_in_time: file.frames_back_in_time,
        secrets: u32::try_from(file.secrets.len()).unwrap_or(u32::MAX),
        ..captures::Row::default()
    };
    row.format.set(&file.format);
    for link_type in &file.link_types {
        row.link_types.more(",").push_str(&link_type.to_string());
    }
    for interface in &file.interfaces {
        row.interfaces.more(",").push_str(interface);
    }
    for (_, comment) in &file.comments {
        row.comments.more("\n").push_str(comment);
    }
    if let Some(damage) = &file.damage {
        row.damage.set(&damage.to_string());
    }
    row
}
