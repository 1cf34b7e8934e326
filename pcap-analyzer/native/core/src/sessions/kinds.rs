//! Kinds of messages by number: sums by kind are found by it.

use super::bytes::ByteSums;
use crate::message::{Parts, Side};
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};

/// Number of a kind of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindId(u16);

impl KindId {
    /// What it is among others, `numbers` by the numbers here.
    pub(super) fn among(self, numbers: &[Self]) -> Self {
        numbers.get(usize::from(self.0)).copied().unwrap_or(self)
    }
}

/// A kind of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// See the table `kinds`.
    pub protocol: &'static str,
    /// See the table `kinds`.
    pub kind: &'static str,
    /// See the table `kinds`.
    pub variant: &'static str,
}

/// Messages of one kind in one direction: those that count as data, or the others.
#[derive(Debug)]
#[repr(align(64))]
pub struct KindCount {
    /// Who sends them.
    pub from: Side,
    /// Their kind.
    pub kind: KindId,
    /// Whether they count as data.
    pub is_data: bool,
    /// Messages that are not carried over with their bytes.
    messages: u32,
    /// Smallest message, the protocol's own bytes.
    pub bytes_min: u32,
    /// Largest message.
    pub bytes_max: u32,
    /// Their bytes.
    pub parts: ByteSums,
}

impl KindCount {
    /// Messages.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.parts.carried_messages() + u64::from(self.messages)
    }

    /// None yet.
    pub(super) fn new(kind: KindId, from: Side, is_data: bool) -> Self {
        Self { from, kind, is_data, messages: 0, bytes_min: u32::MAX, bytes_max: 0, parts: ByteSums::default() }
    }

    /// Counts a message.
    #[inline]
    pub(super) fn add(&mut self, parts: &Parts) {
        let [_, _, _, _, _, own @ ..] = parts;
        let own = own.iter().sum();
        self.messages = self.messages.checked_add(1).unwrap_or_else(|| self.parts.carry_messages(u32::MAX));
        self.bytes_min = self.bytes_min.min(own);
        self.bytes_max = self.bytes_max.max(own);
        self.parts.add(parts);
    }

    #[inline]
    pub(super) fn is_of(&self, kind: KindId, from: Side) -> bool {
        self.kind == kind && self.from == from
    }
}

/// Where the words of a kind stand, and how long they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place([(usize, usize); 3]);

impl Hash for Place {
    /// The places alone tell nearly all kinds apart.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|(place, _)| state.write_usize(*place));
    }
}

/// The kinds that were met. Words of our tables are known by where they stand, which is quicker than by their letters.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Kind>,
    by_place: FxHashMap<Place, KindId>,
}

impl Kinds {
    /// The number of a kind.
    #[inline]
    pub fn number(&mut self, kind: Kind) -> KindId {
        let place = Place([kind.protocol, kind.kind, kind.variant].map(|word| (word.as_ptr() as usize, word.len())));
        match self.by_place.get(&place) {
            Some(&number) => number,
            None => self.add(kind, place),
        }
    }

    /// Words may be equal and stand in two places.
    #[cold]
    fn add(&mut self, kind: Kind, place: Place) -> KindId {
        let at = self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        let number = KindId(u16::try_from(at).unwrap_or(u16::MAX));
        self.by_place.insert(place, number);
        number
    }

    /// All kinds in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = Kind> + '_ {
        self.kinds.iter().copied()
    }

    /// The kind of a number.
    #[must_use]
    pub fn get(&self, number: KindId) -> Option<Kind> {
        self.kinds.get(usize::from(number.0)).copied()
    }
}
