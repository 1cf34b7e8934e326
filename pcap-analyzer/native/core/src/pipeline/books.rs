//! Where the books of the sessions are kept: with the messages, or in a thread of their own.

use super::Options;
use crate::exchanges::Event;
use crate::message::Side;
use crate::sessions::{Beginning, Choices, Entry, Kind, KindId, Kinds, Posting, Sessions};
use std::sync::mpsc::{Receiver, Sender, SyncSender};

/// Postings that travel together to the thread of the books.
const POSTINGS: usize = 1024;
/// Postings looked at together, see [`Sessions::touch`].
const GROUP: usize = 16;

/// The way to the thread of the books, and back for what is to be filled again.
pub struct Post {
    /// Takes full batches.
    pub batches: SyncSender<Vec<Posting>>,
    /// Gives back empty ones.
    pub spare: Receiver<Vec<Posting>>,
}

/// Who puts down what is posted.
enum Keeper {
    /// Nobody asks for sums.
    Nobody(Choices),
    Here(Sessions),
    Elsewhere(Vec<Posting>, Post),
}

/// The books, as the second half of the pass sees them.
pub struct Books {
    keeper: Keeper,
    kinds: Kinds,
    sessions: u32,
}

impl Books {
    /// Books without a line, kept here; or not at all, where only rows are wanted and no count decides what is in them.
    pub fn new(options: &Options) -> Self {
        let choices = options.choices;
        let is_kept = !options.wants_no_sums || choices.stop_after.is_some();
        let keeper = if is_kept { Keeper::Here(Sessions::new(choices)) } else { Keeper::Nobody(choices) };
        Self { keeper, kinds: Kinds::default(), sessions: 0 }
    }

    /// From now on the books are kept in another thread, which is given what there is in them. None where nobody keeps them.
    pub fn hand_over(&mut self, post: Post) -> Option<Sessions> {
        let Keeper::Here(sessions) = &mut self.keeper else { return None };
        let sessions = std::mem::take(sessions);
        self.keeper = Keeper::Elsewhere(Vec::with_capacity(POSTINGS), post);
        Some(sessions)
    }

    /// The other thread has put down all: the books are here again.
    pub fn take_back(&mut self, sessions: Sessions) {
        self.keeper = Keeper::Here(sessions);
    }

    /// Begins a session; returns its number.
    pub fn begin(&mut self, begins: Beginning) -> u32 {
        let number = self.sessions;
        self.sessions += 1;
        self.post(number, Side::Client, Entry::Begins(Box::new(begins)));
        number
    }

    /// The number of a kind of messages.
    #[inline]
    pub fn kind(&mut self, kind: Kind) -> KindId {
        self.kinds.number(kind)
    }

    /// Puts something down. Returns whether it is of a message that counts as data, but not where another thread keeps the books. Inlined, so that a
    /// posting is written where it stays: copies of what has just been written are what cost here.
    #[inline(always)]
    pub fn post(&mut self, session: u32, from: Side, entry: Entry) -> bool {
        match &mut self.keeper {
            Keeper::Nobody(choices) => matches!(&entry, Entry::Message(count) if choices.data_bytes(count, from).is_some()),
            Keeper::Here(sessions) => sessions.post(&Posting { session, from, entry }),
            Keeper::Elsewhere(batch, post) => {
                if batch.len() >= POSTINGS {
                    post.send(batch);
                }
                batch.push(Posting { session, from, entry });
                false
            }
        }
    }

    /// Puts down what exchanges report.
    #[inline]
    pub fn post_event(&mut self, event: Event) {
        self.post(event.session(), Side::Client, Entry::Event(event));
    }

    /// Sends on what still waits to be sent; nothing can be posted until the books are here again.
    pub fn flush(&mut self) {
        if let Keeper::Elsewhere(batch, post) = &mut self.keeper {
            post.send(batch);
        }
        self.keeper = Keeper::Here(Sessions::default());
    }

    /// The sessions, when all is put down.
    pub fn close(self) -> Sessions {
        let Keeper::Here(mut sessions) = self.keeper else { return Sessions::default() };
        sessions.close(self.kinds);
        sessions
    }
}

impl Post {
    #[cold]
    fn send(&self, batch: &mut Vec<Posting>) {
        let empty = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(POSTINGS));
        let _ = self.batches.send(std::mem::replace(batch, empty));
    }
}

/// Keeps the books until nobody posts any more.
pub fn keep(mut sessions: Sessions, arriving: &Receiver<Vec<Posting>>, back_again: &Sender<Vec<Posting>>) -> Sessions {
    for mut batch in arriving {
        for group in batch.chunks(GROUP) {
            sessions.touch(group);
            for posting in group {
                sessions.post(posting);
            }
        }
        batch.clear();
        let _ = back_again.send(batch);
    }
    sessions
}
