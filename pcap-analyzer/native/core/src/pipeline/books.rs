//! Where the books of the sessions are kept: with the messages, or in a thread of their own.

use super::Options;
use crate::arena::IN_CACHE;
use crate::exchanges::Event;
use crate::message::Side;
use crate::sessions::{Beginning, Choices, Entry, Kind, KindId, Kinds, Posting, Rare, Sessions, Told};
use std::sync::mpsc::{Receiver, Sender, SyncSender};

/// Lines that travel together to the thread of the books.
const LINES: usize = 4096;
/// Postings looked at together, see [`Sessions::touch`].
const GROUP: usize = 16;

/// Lines on their way to the thread of the books.
#[derive(Debug)]
pub struct Postings {
    /// Room for lines; it is written over again and again.
    lines: Vec<Posting>,
    /// How many there are now.
    count: usize,
    /// What stands beside those that say so.
    rare: Vec<Rare>,
}

impl Default for Postings {
    fn default() -> Self {
        Self { lines: vec![Posting { session: 0, from: Side::Client, entry: Entry::Rare }; LINES], count: 0, rare: Vec::new() }
    }
}

/// The way to the thread of the books, and back for what is to be filled again.
pub struct Post {
    /// Takes full batches.
    pub batches: SyncSender<Postings>,
    /// Gives back empty ones.
    pub spare: Receiver<Postings>,
}

/// Who puts down what is posted.
enum Keeper {
    /// Nobody asks for sums.
    Nobody(Choices),
    Here(Sessions),
    Elsewhere(Postings, Post),
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
        self.keeper = Keeper::Elsewhere(Postings::default(), post);
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
        self.post_rare(number, Side::Client, Rare::Begins(begins));
        number
    }

    /// The number of a kind of messages.
    #[inline]
    pub fn kind(&mut self, kind: Kind) -> KindId {
        self.kinds.number(kind)
    }

    /// Puts something down. Returns whether it is of a message that counts as data, but not where another thread keeps the books. Inlined, and with the
    /// entry made last, so that it is written where it stays: copies of what has just been written are what cost here.
    #[inline(always)]
    pub fn post(&mut self, session: u32, from: Side, entry: impl FnOnce() -> Entry) -> bool {
        match &mut self.keeper {
            Keeper::Nobody(choices) => matches!(&entry(), Entry::Message(count) if choices.data_bytes(count, from).is_some()),
            Keeper::Here(sessions) => sessions.post(&Posting { session, from, entry: entry() }),
            Keeper::Elsewhere(postings, post) => {
                if postings.count == LINES {
                    post.send(postings);
                }
                if let Some(line) = postings.lines.get_mut(postings.count) {
                    *line = Posting { session, from, entry: entry() };
                    postings.count += 1;
                }
                false
            }
        }
    }

    /// Puts down what is seldom.
    pub fn post_rare(&mut self, session: u32, from: Side, rare: Rare) {
        if let Keeper::Here(sessions) = &mut self.keeper {
            return sessions.post_rare(session, from, rare);
        }
        self.post(session, from, || Entry::Rare);
        if let Keeper::Elsewhere(postings, _) = &mut self.keeper {
            postings.rare.push(rare);
        }
    }

    /// Puts down what exchanges report.
    #[inline]
    pub fn post_event(&mut self, event: Event) {
        self.post(event.session(), Side::Client, || Entry::Event(event));
    }

    /// Puts down what exchanges report as a message is placed, but for what there is room for in the message's own line.
    #[inline]
    pub fn post_events(&mut self, session: u32, events: impl Iterator<Item = Event>) -> Told {
        let mut told = Told::default();
        for event in events {
            if let Some(other) = told.take(event, session) {
                self.post_event(other);
            }
        }
        told
    }

    /// Sends on what still waits to be sent; nothing can be posted until the books are here again.
    pub fn flush(&mut self) {
        if let Keeper::Elsewhere(postings, post) = &mut self.keeper {
            post.send(postings);
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
    fn send(&self, postings: &mut Postings) {
        let empty = self.spare.try_recv().unwrap_or_default();
        let _ = self.batches.send(std::mem::replace(postings, empty));
    }
}

/// Keeps the books until nobody posts any more.
pub fn keep(mut sessions: Sessions, arriving: &Receiver<Postings>, back_again: &Sender<Postings>) -> Sessions {
    for mut postings in arriving {
        let mut rare = postings.rare.drain(..);
        for group in postings.lines.get(..postings.count).unwrap_or_default().chunks(GROUP) {
            if sessions.len() > IN_CACHE {
                sessions.touch(group);
            }
            for posting in group {
                if !matches!(posting.entry, Entry::Rare) {
                    sessions.post(posting);
                } else if let Some(rare) = rare.next() {
                    sessions.post_rare(posting.session, posting.from, rare);
                }
            }
        }
        drop(rare);
        postings.count = 0;
        let _ = back_again.send(postings);
    }
    sessions
}
