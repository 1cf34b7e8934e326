//! Tables as Arrow batches: streamed while the pass goes on (messages, exchanges), or made of its outcome.

use super::{capture_row, run_source, Options, Outcome, Sink};
use crate::capture::Source;
use crate::error::Error;
use crate::note::Note;
use crate::schema::{captures, directions, exchanges, kinds, messages, notes, sessions, timings};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Rows in a batch.
const ROWS: usize = 1 << 15;
/// Batches that wait to be taken.
const WAITING: usize = 2;

/// A batch, and the table that it is of; what ends a pass early is of none.
pub type TableBatch = (&'static str, Result<RecordBatch, ArrowError>);

/// Sends rows on in batches.
struct BatchSink {
    sender: SyncSender<TableBatch>,
    messages: messages::Builder,
    exchanges: exchanges::Builder,
    /// Tables of which there is a batch.
    begun: Vec<&'static str>,
    is_closed: bool,
}

impl BatchSink {
    /// Sends a batch; an empty one where there is none of the table yet.
    fn send(&mut self, table: &'static str, batch: Result<RecordBatch, ArrowError>) {
        let is_empty = batch.as_ref().is_ok_and(|batch| batch.num_rows() == 0);
        if !self.begun.contains(&table) {
            self.begun.push(table);
        } else if is_empty {
            return;
        }
        self.is_closed |= self.sender.send((table, batch)).is_err();
    }

    fn send_messages(&mut self) {
        let batch = self.messages.finish();
        self.send("messages", batch);
    }

    fn send_exchanges(&mut self) {
        let batch = self.exchanges.finish();
        self.send("exchanges", batch);
    }
}

impl Sink for BatchSink {
    fn message(&mut self, row: &messages::Row) {
        self.messages.append(row);
        if self.messages.len() >= ROWS {
            self.send_messages();
        }
    }

    fn exchange(&mut self, row: &exchanges::Row) {
        self.exchanges.append(row);
        if self.exchanges.len() >= ROWS {
            self.send_exchanges();
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// Batches of tables as they come: of each table one at least, which may be empty.
pub struct Batches {
    receiver: Receiver<TableBatch>,
}

impl Batches {
    /// The next batch.
    ///
    /// # Errors
    /// Where there is none within `patience`, or none any more.
    pub fn receive(&self, patience: Duration) -> Result<TableBatch, RecvTimeoutError> {
        self.receiver.recv_timeout(patience)
    }
}

/// How a pass ended.
#[derive(Debug, Default)]
pub struct End {
    /// What damaged inputs had to say, a line each.
    pub damage: Vec<String>,
    /// What ended it early.
    pub failure: Option<Error>,
    /// Whether it noted anything that the capture does not show.
    pub has_notes: bool,
    /// How many sessions it found.
    pub sessions: u32,
}

/// The end of a pass, known once the batches have ended.
pub type Ended = Arc<Mutex<End>>;

/// The schema of a table.
#[must_use]
pub fn schema(table: &str) -> Option<SchemaRef> {
    Some(match table {
        "messages" => messages::Builder::schema(),
        "exchanges" => exchanges::Builder::schema(),
        "sessions" => sessions::Builder::schema(),
        "directions" => directions::Builder::schema(),
        "kinds" => kinds::Builder::schema(),
        "timings" => timings::Builder::schema(),
        "notes" => notes::Builder::schema(),
        "captures" => captures::Builder::schema(),
        _ => return None,
    })
}

/// Starts a pass in a thread of its own that fills tables. Where all notes are wanted it adds sums up as well, of which some are about.
#[must_use]
pub fn start(source: Box<dyn Source>, mut options: Options, tables: Vec<&'static str>, wants_notes: bool) -> (Batches, Ended) {
    let (sender, receiver) = sync_channel(WAITING);
    let end = Ended::default();
    let told = Arc::clone(&end);
    options.wants_messages = tables.contains(&"messages");
    options.wants_exchanges = tables.contains(&"exchanges");
    options.wants_no_sums = !wants_notes && tables.iter().all(|table| STREAMED.contains(table));
    std::thread::spawn(move || {
        let (messages, exchanges, begun) = Default::default();
        let mut sink = BatchSink { sender, messages, exchanges, begun, is_closed: false };
        match run_source(source, &options, &mut sink) {
            Ok(outcome) => finish(&outcome, &mut sink, &tables, &told),
            Err(error) => {
                if let Ok(mut told) = told.lock() {
                    told.failure = Some(error.clone());
                }
                sink.send("", Err(ArrowError::ExternalError(Box::new(error))));
            }
        }
    });
    (Batches { receiver }, end)
}

/// Tables whose rows are made while the pass goes on; others are of sums.
const STREAMED: [&str; 2] = ["messages", "exchanges"];

fn finish(outcome: &Outcome, sink: &mut BatchSink, tables: &[&'static str], told: &Ended) {
    for table in tables {
        match *table {
            "messages" => sink.send_messages(),
            "exchanges" => sink.send_exchanges(),
            table => outcome.batches(table, &mut |batch| sink.send(table, batch)),
        }
    }
    if let Ok(mut told) = told.lock() {
        told.sessions = outcome.begun;
        told.has_notes = outcome.notes.rows().next().is_some();
        told.damage.extend(outcome.files.iter().filter_map(|file| file.damage.as_ref()).map(ToString::to_string));
    }
}

impl Outcome {
    /// One of the tables that a pass without rows fills, in batches.
    fn batches(&self, table: &str, send: &mut dyn FnMut(Result<RecordBatch, ArrowError>)) {
        macro_rules! batches {
            ($table:ident, $rows:ident) => {{
                let mut builder = $table::Builder::default();
                for row in self.$rows() {
                    builder.append(&row);
                    if builder.len() >= ROWS {
                        send(builder.finish());
                    }
                }
                send(builder.finish());
            }};
        }
        match table {
            "sessions" => batches!(sessions, session_rows),
            "directions" => batches!(directions, direction_rows),
            "kinds" => batches!(kinds, kind_rows),
            "timings" => batches!(timings, timing_rows),
            "notes" => batches!(notes, note_rows),
            "captures" => batches!(captures, capture_rows),
            _ => {}
        }
    }

    /// Rows of the table `notes` about one session, or about the capture.
    pub fn notes_of(&self, session: Option<u32>) -> impl Iterator<Item = notes::Row> + '_ {
        self.notes.of(session).map(|note| self.note_row(note))
    }

    /// Rows of the table `sessions`.
    pub fn session_rows(&self) -> impl Iterator<Item = sessions::Row> + '_ {
        self.sessions.all().map(crate::sessions::Session::session_row)
    }

    /// Rows of the table `directions`.
    pub fn direction_rows(&self) -> impl Iterator<Item = directions::Row> + '_ {
        self.sessions.all().flat_map(crate::sessions::Session::direction_rows)
    }

    /// Rows of the table `kinds`.
    pub fn kind_rows(&self) -> impl Iterator<Item = kinds::Row> + '_ {
        self.sessions.all().flat_map(|session| self.sessions.kind_rows(session))
    }

    /// Rows of the table `timings`.
    pub fn timing_rows(&self) -> impl Iterator<Item = timings::Row> + '_ {
        self.sessions.all().flat_map(crate::sessions::Session::timing_rows)
    }

    /// Rows of the table `notes`.
    pub fn note_rows(&self) -> impl Iterator<Item = notes::Row> + '_ {
        self.notes.rows().map(|note| self.note_row(note))
    }

    /// Rows of the table `captures`.
    pub fn capture_rows(&self) -> impl Iterator<Item = captures::Row> + '_ {
        self.files.iter().map(capture_row)
    }

    fn note_row(&self, note: &Note) -> notes::Row {
        let mut row = notes::Row {
            note: note.kind.id,
            session: note.session,
            file: self.files.get(usize::from(note.file)).map(|file| Arc::from(file.path.as_str())),
            frame_first: note.frame_first,
            frame_last: note.frame_last,
            count: note.count,
            affects: note.kind.affects,
            ..notes::Row::default()
        };
        row.text.set(note.kind.text);
        let detail = note.detail.to_string();
        if !detail.is_empty() {
            row.text.more(": ").push_str(&detail);
        }
        row
    }
}
