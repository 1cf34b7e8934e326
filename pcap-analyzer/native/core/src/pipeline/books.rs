//! The books of the sessions, as the second half of the pass sees them.

use super::Options;
use crate::exchanges::Event;
use crate::message::Side;
use crate::sessions::{Beginning, Choices, Count, Kind, KindId, Kinds, Ledger, Session};
use crate::share::Part;

/// The sums of sessions; or only the numbers of these, where nobody asks for sums and no count decides what is in the rows.
pub struct Books {
    ledger: Option<Ledger>,
    choices: Choices,
    kinds: Kinds,
    part: Part,
    begun: u32,
}

impl Books {
    /// Books without a line.
    pub fn new(options: &Options, part: Part) -> Self {
        let choices = options.choices;
        let is_kept = !options.wants_no_sums || choices.stop_after.is_some();
        Self { ledger: is_kept.then(|| Ledger::new(part)), choices, kinds: Kinds::default(), part, begun: 0 }
    }

    /// Begins a session; returns its number.
    pub fn begin(&mut self, begins: &Beginning) -> u32 {
        let number = self.part.number(self.begun);
        self.begun += 1;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(number, begins);
        }
        number
    }

    /// The number of a kind of messages.
    #[inline]
    pub fn kind(&mut self, kind: Kind) -> KindId {
        self.kinds.number(kind)
    }

    /// A session, where it is to be read ahead.
    #[inline]
    pub fn get(&self, session: u32) -> Option<&Session> {
        self.ledger.as_ref()?.get(session)
    }

    /// A session to put something down, where sums are wanted.
    #[inline]
    pub fn of(&mut self, session: u32) -> Option<&mut Session> {
        self.ledger.as_mut()?.get_mut(session)
    }

    /// Whether a message is of an exchange behind the last one that counts, so that what it tells of times and legs counts for nothing.
    #[inline]
    pub fn is_late(&self, session: u32, count: &Count) -> bool {
        self.choices.stop_after.is_some() && self.get(session).is_some_and(|session| session.is_late(count.exchange))
    }

    /// Puts down a message. Returns whether it counts as data.
    #[inline]
    pub fn message(&mut self, session: u32, from: Side, count: &Count) -> bool {
        match &mut self.ledger {
            Some(ledger) => ledger.get_mut(session).is_some_and(|session| session.message(count, from, &self.choices)),
            None => self.choices.data_bytes(count, from).is_some(),
        }
    }

    /// Puts down what exchanges report, or TCP, of a message from this side.
    #[inline]
    pub fn event(&mut self, event: &Event, from: Side) {
        if let Some(session) = self.of(event.session()) {
            session.take(event, from);
        }
    }

    /// How many sessions began.
    pub const fn begun(&self) -> u32 {
        self.begun
    }

    /// The sums, when all is put down.
    pub fn close(self) -> (Ledger, Kinds) {
        (self.ledger.unwrap_or_else(|| Ledger::new(self.part)), self.kinds)
    }
}
