//! Gathers a column of texts of which few are different.

use crate::packet::Address;
use arrow_array::StringArray;
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use rustc_hash::FxHashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;

/// Bytes that are copied at once: most words are no longer.
const AT_ONCE: usize = 16;

/// What stands in a row without a text.
const NONE: u32 = u32::MAX;

/// Texts that were met last, by a few bits of where they stand or what they are.
const RECENT: usize = 32;

/// What a column of few texts may hold.
pub trait Term: Clone + Display + Eq + Hash {
    /// Tells terms apart, more or less.
    fn hint(&self) -> usize;
    /// Whether it is one and the same, which is quick to see; another one may still be equal.
    fn is_identical(&self, other: &Self) -> bool;
}

impl Term for &'static str {
    #[inline]
    fn hint(&self) -> usize {
        let at = self.as_ptr() as usize;
        at ^ at >> 5
    }
    #[inline]
    fn is_identical(&self, other: &Self) -> bool {
        std::ptr::eq(*self, *other)
    }
}

impl Term for Arc<str> {
    #[inline]
    fn hint(&self) -> usize {
        self.len()
    }
    #[inline]
    fn is_identical(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}

impl Term for Address {
    #[inline]
    fn hint(&self) -> usize {
        match self {
            Self::V4([.., last]) | Self::V6([.., last]) => usize::from(*last),
        }
    }
    #[inline]
    fn is_identical(&self, other: &Self) -> bool {
        self == other
    }
}

/// The texts of a column. A row is the number of its text, until the column is made: so a text is looked up, not made and copied, row by row.
#[derive(Debug, Default)]
pub struct Words<T> {
    numbers: FxHashMap<T, u32>,
    texts: Vec<T>,
    recent: [u32; RECENT],
    rows: Vec<u32>,
}

/// A text with its beginning where it can be copied without a look at its length.
struct Word {
    start: [u8; AT_ONCE],
    text: String,
}

impl<T: Term> Words<T> {
    /// Adds a row.
    #[inline]
    pub fn put(&mut self, text: &T) {
        let place = text.hint() % RECENT;
        let before = self.recent.get(place).copied().unwrap_or(NONE);
        if self.texts.get(before as usize).is_some_and(|known| known.is_identical(text)) {
            self.rows.push(before);
        } else {
            self.put_other(place, text);
        }
    }

    /// Adds a row whose text was not met just before, in the same place.
    #[cold]
    fn put_other(&mut self, place: usize, text: &T) {
        let number = self.number(text);
        self.recent.get_mut(place).into_iter().for_each(|recent| *recent = number);
        self.rows.push(number);
    }

    /// Adds rows without a text.
    pub fn put_none(&mut self, count: usize) {
        self.rows.resize(self.rows.len() + count, NONE);
    }

    fn number(&mut self, text: &T) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(NONE);
        self.numbers.insert(text.clone(), number);
        self.texts.push(text.clone());
        number
    }

    /// The column so far; no row is left.
    pub fn column(&mut self) -> StringArray {
        let words: Vec<Word> = self.texts.drain(..).map(|text| Word::new(text.to_string())).collect();
        self.numbers.clear();
        let mut bytes: Vec<u8> = Vec::new();
        let mut ends: Vec<i32> = Vec::with_capacity(self.rows.len() + 1);
        ends.push(0);
        for &row in &self.rows {
            words.get(row as usize).into_iter().for_each(|word| word.append_to(&mut bytes));
            ends.push(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        }
        let nulls = self.rows.contains(&NONE).then(|| self.rows.iter().map(|&row| row != NONE).collect::<NullBuffer>());
        self.rows.clear();
        StringArray::new(OffsetBuffer::new(ScalarBuffer::from(ends)), Buffer::from_vec(bytes), nulls)
    }
}

impl Word {
    fn new(text: String) -> Self {
        let mut start = [0; AT_ONCE];
        start.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        Self { start, text }
    }

    #[inline]
    fn append_to(&self, bytes: &mut Vec<u8>) {
        if self.text.len() > AT_ONCE {
            return bytes.extend_from_slice(self.text.as_bytes());
        }
        bytes.extend_from_slice(&self.start);
        bytes.truncate(bytes.len() - AT_ONCE + self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn texts_stand_in_their_rows() {
        let texts = ["c2s", "", "of more than sixteen bytes", "c2s", "exactly sixteen."];
        let mut words = Words::default();
        texts[..3].iter().for_each(|text| words.put(text));
        words.put_none(2);
        texts[3..].iter().for_each(|text| words.put(text));

        let column = words.column();

        let expected = StringArray::from_iter([Some(texts[0]), Some(texts[1]), Some(texts[2]), None, None, Some(texts[3]), Some(texts[4])]);
        assert_eq!(expected, column);
    }

    #[test]
    fn the_next_column_knows_nothing_of_the_one_before() {
        let mut words = Words::default();
        ["a", "b"].iter().for_each(|text| words.put(text));
        words.column();
        words.put(&"b");

        assert_eq!(StringArray::from(vec!["b"]), words.column());
        assert!(words.column().is_empty());
    }
}
