//! The one pass: source, rooms in order, sinks that were asked for. Of a capture that is not small messages are found, and sums added up, in several
//! threads, each of which has its own part of the streams; where rows are wanted in their order, in one, while another one reads.

mod back;
mod books;
mod desk;
mod feed;
mod front;
mod routes;
mod single;
pub mod tables;

pub use front::Others;
pub use single::decode;

use crate::capture::{self, FileInfo, Frames, Input, Source};
use crate::error::{Error, ErrorKind};
use crate::exchanges::{Event, Linker};
use crate::message::Side;
use crate::note::{self, Detail, Note, Notes};
use crate::pdml::{Failure, Pdml};
use crate::protocols::{DecodeAs, Decoding};
use crate::schema::{captures, exchanges, messages};
use crate::sessions::{Choices, Sessions};
use crate::share::{Part, Share};
use back::{Back, Closed, Duty};
use feed::Feed;
use front::{Batch, Front, FrontOutcome};
use routes::Routes;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

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
    /// The part of the rows that is wanted, by session, where several passes share them. Each pass reads all of the capture, so that numbers, and links
    /// between sessions, are those of a pass that is not shared.
    pub share: Option<Share>,
    /// How many threads find messages, where there are no rows whose order matters; none to choose by the machine.
    pub threads: Option<u32>,
    /// Number of the frame that the pass has come to, for whoever shows progress.
    pub frame: Arc<AtomicU64>,
}

impl Options {
    /// Whether rows of a session are for this pass.
    #[inline]
    fn shares(&self, session: u32) -> bool {
        self.share.is_none_or(|share| share.has(session))
    }

    /// Into how many parts the sessions may be divided, so that as many threads find messages: one, where what one session has decides what another's
    /// row is.
    fn parts(&self) -> u32 {
        let has_rows = self.wants_messages || self.wants_exchanges;
        if has_rows || self.tshark.is_some() || self.choices.stop_after.is_some() {
            return 1;
        }
        self.threads.unwrap_or_else(|| u32::try_from(cores()).unwrap_or(THREADS)).clamp(1, THREADS)
    }

    /// Whether rows of a session's messages are wanted.
    #[inline]
    fn wants_messages_of(&self, session: u32) -> bool {
        self.wants_messages && self.shares(session)
    }

    /// Whether rows show text of a session's messages: their own, or those of its exchanges.
    #[inline]
    fn wants_text_of(&self, session: u32) -> bool {
        (self.wants_messages || self.wants_exchanges) && self.shares(session)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
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
    /// How many sessions there are, whether they were added up or not.
    pub begun: u32,
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

/// Batches that are filled before threads begin. A capture of no more packets than are in so many is read in one thread: others would not be at work
/// before it ends.
const BATCHES: usize = 16;
/// Threads that find messages, at most: one at a time opens frames, for all of them.
const THREADS: u32 = 4;

/// Reads captures from one end to the other.
///
/// # Errors
/// Where nothing can be read of any input, or tshark failed.
pub fn run(inputs: Vec<Input>, options: &Options, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    run_source(capture::open(inputs)?, options, sink)
}

/// The same from a source that is open.
///
/// # Errors
/// Where nothing can be read of any input, or tshark failed.
pub fn run_source(source: Box<dyn Source>, options: &Options, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let parts = options.parts();
    let mut front = Front::new(source, Routes::new(options, parts));
    let mut begun = Vec::new();
    while begun.len() < BATCHES {
        let Some(batch) = front.fill(Batch::default())? else { break };
        begun.push(batch);
    }
    let pdml = options.tshark.as_deref().map(Pdml::start).transpose().map_err(|error| no_tshark(options, &error))?;
    let files: Vec<Arc<str>> = front.files().iter().map(|file| Arc::from(file.path.as_str())).collect();
    let linker = (parts > 1).then(|| Mutex::new(Linker::new(Part::all(parts))));
    let mut duties = Part::all(parts).map(|part| Duty { options, files: files.clone(), part, linker: linker.as_ref() });
    let Some(first) = duties.next() else { return Err(broken()) };
    let (front, closed) = if front.is_ended() {
        let mut closed = vec![in_turn(Back::new(first, sink, pdml), &begun)];
        for duty in duties {
            closed.push(in_turn(Back::new(duty, &mut NoRows, None), &begun));
        }
        (front.finish(), closed)
    } else {
        in_threads(front, begun, Back::new(first, sink, pdml), duties.collect())?
    };
    if let Some(failure) = closed.iter().find_map(|part| part.failure.as_ref()).filter(|failure| !is_of_damage(failure, &front.files)) {
        return Err(failed(ErrorKind::Tool, "tshark".to_owned(), failure.cause.clone(), TSHARK_REMEDY));
    }
    let events = linker.and_then(|linker| linker.into_inner().ok()).into_iter().flat_map(Linker::finish);
    Ok(Outcome::of(front, closed, events))
}

/// Whether tshark did not end well because the capture does not: what it could read it has read.
fn is_of_damage(failure: &Failure, files: &[FileInfo]) -> bool {
    let has_no_frames = files.iter().all(|file| file.frames == 0);
    files.iter().any(|file| file.damage.is_some()) && (failure.is_behind_all || has_no_frames)
}

/// Takes what batches have for one part of the sessions.
fn in_turn(mut back: Back<'_>, batches: &[Batch]) -> Closed {
    batches.iter().for_each(|batch| back.take(batch));
    back.finish()
}

/// A capture that is not small: this thread, and one more for each other part of the sessions, find messages and add up. Where there is one part, and more
/// than one processor, another thread reads.
fn in_threads<'s>(front: Front, begun: Vec<Batch>, first: Back<'_>, others: Vec<Duty<'s>>) -> Result<(FrontOutcome, Vec<Closed>), Error> {
    let feed = Feed::new(front, begun, 1 + others.len());
    let closed = std::thread::scope(|scope| {
        let reader = (others.is_empty() && cores() > 1).then(|| scope.spawn(|| feed.fill_all()));
        let at_work: Vec<_> = others.into_iter().map(|duty| scope.spawn(|| take_all(Back::new(duty, &mut NoRows, None), &feed))).collect();
        let mut closed = vec![take_all(first, &feed)];
        closed.extend(at_work.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(broken()))));
        let read = reader.map_or(Ok(()), |reader| reader.join().unwrap_or_else(|_| Err(broken())));
        read.and_then(|()| closed.into_iter().collect::<Result<Vec<Closed>, Error>>())
    })?;
    Ok((feed.finish(), closed))
}

/// Takes what the batches have for one part of the sessions.
fn take_all(mut back: Back<'_>, feed: &Feed) -> Result<Closed, Error> {
    let member = feed.member(back.part());
    while let Some(batch) = member.next()? {
        back.take(&batch);
        member.give_back(batch);
        if back.is_closed() {
            break;
        }
    }
    drop(member);
    Ok(back.finish())
}

fn broken() -> Error {
    failed(ErrorKind::Damaged, String::new(), "a thread failed".to_owned(), "report this with the capture")
}

/// What helps where tshark fails.
const TSHARK_REMEDY: &str = "try its options with tshark itself, or use --engine native";

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
    /// What both halves know, the second one by parts, and what was told when all parts had ended.
    fn of(front: FrontOutcome, closed: Vec<Closed>, events: impl Iterator<Item = Event>) -> Self {
        let mut outcome = Self::default();
        let mut sums = Vec::new();
        for part in closed {
            outcome.begun += part.begun;
            outcome.messages += part.messages;
            outcome.notes.absorb(part.notes);
            add_all(&mut outcome.others, part.others);
            add_all(&mut outcome.unmatched_ports, part.unmatched_ports);
            sums.push(part.sums);
        }
        outcome.sessions = Sessions::of(sums, events, &mut outcome.notes);
        outcome.note_sessions();
        outcome.join(front);
        outcome
    }

    /// Takes in what the first half knows.
    fn join(&mut self, front: FrontOutcome) {
        add_all(&mut self.others, front.others);
        self.notes.absorb(front.notes);
        for (number, file) in front.files.iter().enumerate() {
            self.note_file(u16::try_from(number).unwrap_or(u16::MAX), file);
        }
        self.files = front.files;
    }

    fn note_file(&mut self, number: u16, file: &FileInfo) {
        let mut add = |kind, frames: Frames, detail: Detail| {
            let Frames { count, first: frame_first, last: frame_last } = frames;
            if count > 0 {
                self.notes.take(Note { kind, session: None, file: number, frame_first, frame_last, count, detail });
            }
        };
        let last = file.last_number();
        let dropped = file.dropped_frames.unwrap_or(0);
        add(note::DROPPED, Frames { count: dropped, first: last, last }, Detail::Sum(dropped, "frames"));
        let back = file.frames_back_in_time;
        add(note::TIME_BACKWARDS, back, Detail::Sum(back.count, "frames"));
        if let Some(damage) = &file.damage {
            let kind = if damage.kind == crate::error::ErrorKind::CutShort { note::CUT_SHORT } else { note::DAMAGED };
            add(kind, Frames { count: 1, first: last, last }, Detail::First(damage.to_string()));
        }
    }
}

/// Frees what takes long to free, the state of thousands of streams, beside what comes next. A process that ends meanwhile need not wait for it.
pub fn free_later<T: Send + 'static>(what: T) {
    // where no thread can be had, it is freed here
    drop(std::thread::Builder::new().spawn(move || drop(what)));
}

/// Adds frames and bytes to those that are known.
fn add_all<K: Ord>(sums: &mut BTreeMap<K, (u64, u64)>, more: BTreeMap<K, (u64, u64)>) {
    for (key, (frames, bytes)) in more {
        let sums = sums.entry(key).or_default();
        sums.0 += frames;
        sums.1 += bytes;
    }
}

impl Outcome {
    /// Notes on what the sums of each session show.
    fn note_sessions(&mut self) {
        for session in self.sessions.all() {
            let row = &session.row;
            let [c2s, s2c] = &session.directions;
            let (main, other) = if session.data_sender() == Side::Client { (c2s, s2c) } else { (s2c, c2s) };
            let has_data = main.data.messages > 0;
            let is_secured = row.time1_security_ns.is_some();
            let remarks = [
                (note::NO_DATA, u64::from(!has_data && !is_secured), ""),
                (note::NO_OPENING, u64::from(has_data && !is_secured && !row.is_opening_seen), ""),
                (note::NO_LAST_ACK, u64::from(has_data && main.data.is_ack_expected() && main.data.last_ack_ns.is_none()), ""),
                (note::BOTH_WAYS, other.data.messages, "the other way"),
                (note::UNANSWERED, row.exchanges_unanswered, "exchanges"),
                (note::AMBIGUOUS, session.ambiguous, "exchanges"),
                (note::UNDELIVERED, session.undelivered, "publications"),
                (note::STOPPED, row.messages_after_stop, "messages"),
            ];
            for (kind, count, of_what) in remarks.into_iter().filter(|(_, count, _)| *count > 0) {
                let detail = || if of_what.is_empty() { String::new() } else { format!("{count} {of_what}") };
                self.notes.add(kind, Some(row.session), 0, row.frame_last, detail);
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
        frames_back_in_time: file.frames_back_in_time.count,
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
