//! Handshake messages out of fragments that may be lost, repeated or out of order (RFC 6347 §4.2.2, §4.2.3).

use crate::bytes::{Cursor, Short};
use crate::protocols::tls::{Association, CLIENT_HELLO};
use std::borrow::Cow;

/// Messages of one side whose repetition is recognised; handshakes have fewer.
const MESSAGES: usize = 32;

/// Most messages of one side that are not whole at a time.
const MOST_PARTIAL: usize = 8;

/// Most bytes of a message that is put together.
const MOST_BYTES: usize = 128 * 1024;

/// Most fragments of a message that are kept.
const MOST_PIECES: usize = 128;

/// A fragment with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    pub kind: u8,
    pub message_seq: u16,
    length: usize,
    offset: usize,
    fragment_length: usize,
    /// Its bytes, as far as they are at hand.
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The fragment at the start of a record's fragment, and what is behind it.
    pub fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut cursor = Cursor::new(bytes);
        Self::parse(&mut cursor).ok().map(|fragment| (fragment, cursor.rest()))
    }

    fn parse(cursor: &mut Cursor<'a>) -> Result<Self, Short> {
        let kind = cursor.u8()?;
        let length = cursor.u24()? as usize;
        let message_seq = cursor.u16()?;
        let offset = cursor.u24()? as usize;
        let fragment_length = cursor.u24()? as usize;
        let bytes = cursor.take(fragment_length.min(cursor.rest().len()))?;
        Ok(Self { kind, message_seq, length, offset, fragment_length, bytes })
    }

    /// Whether it holds its whole message.
    const fn is_whole(&self) -> bool {
        self.offset == 0 && self.fragment_length == self.length
    }

    const fn end(&self) -> usize {
        self.offset + self.fragment_length
    }

    /// Whether a client begins anew, from the same port (RFC 6347 §4.2.8).
    pub fn is_client_hello_of_another(&self, association: &Association) -> bool {
        self.kind == CLIENT_HELLO && self.offset == 0 && association.is_other_client(self.bytes)
    }
}

/// The messages of one side.
#[derive(Debug, Default)]
pub struct Reassembly {
    /// By message_seq, the type of each whole message; 255 where there is none.
    whole: Option<Box<[u8; MESSAGES]>>,
    partial: Vec<Partial>,
}

/// A message that is not whole.
#[derive(Debug)]
struct Partial {
    message_seq: u16,
    kind: u8,
    length: usize,
    /// Offsets and bytes of what came, as it came: memory grows with what was captured, not with what a header claims.
    pieces: Vec<(usize, Vec<u8>)>,
    /// What has come: ranges in order, apart from each other.
    ranges: Vec<(usize, usize)>,
}

/// What a fragment brings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Added<'a> {
    /// Whether any of it was not there before.
    pub is_new: bool,
    /// The body of the message that it makes whole, the first time.
    pub whole: Option<Cow<'a, [u8]>>,
}

impl Reassembly {
    /// Adds a fragment.
    pub fn add<'a>(&mut self, fragment: &Fragment<'a>) -> Added<'a> {
        if self.is_known(fragment) {
            return Added::default();
        }
        if fragment.is_whole() {
            self.is_whole(fragment);
            return Added { is_new: true, whole: Some(Cow::Borrowed(fragment.bytes)) };
        }
        if fragment.length > MOST_BYTES || fragment.end() > fragment.length {
            return Added { is_new: true, whole: None };
        }
        let at = self.partial(fragment);
        let Some(partial) = self.partial.get_mut(at) else { return Added::default() };
        let is_new = partial.add(fragment);
        if partial.ranges != [(0, fragment.length)] {
            return Added { is_new, whole: None };
        }
        let body = partial.body();
        self.is_whole(fragment);
        Added { is_new, whole: Some(Cow::Owned(body)) }
    }

    fn is_known(&self, fragment: &Fragment<'_>) -> bool {
        let whole = self.whole.as_ref().and_then(|whole| whole.get(usize::from(fragment.message_seq)));
        whole == Some(&fragment.kind)
    }

    /// Remembers that this message is whole.
    fn is_whole(&mut self, fragment: &Fragment<'_>) {
        self.partial.retain(|partial| partial.message_seq != fragment.message_seq);
        let whole = self.whole.get_or_insert_with(|| Box::new([u8::MAX; MESSAGES]));
        if let Some(kind) = whole.get_mut(usize::from(fragment.message_seq)) {
            *kind = fragment.kind;
        }
    }

    /// Where the message of this fragment is put together.
    fn partial(&mut self, fragment: &Fragment<'_>) -> usize {
        let is_same = |partial: &Partial| {
            (partial.message_seq, partial.kind, partial.length) == (fragment.message_seq, fragment.kind, fragment.length)
        };
        if let Some(at) = self.partial.iter().position(is_same) {
            return at;
        }
        if self.partial.len() == MOST_PARTIAL {
            self.partial.remove(0);
        }
        let (message_seq, kind, length) = (fragment.message_seq, fragment.kind, fragment.length);
        self.partial.push(Partial { message_seq, kind, length, pieces: Vec::new(), ranges: Vec::new() });
        self.partial.len() - 1
    }
}

impl Partial {
    /// Whether any byte of the fragment was not there before.
    fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        let (start, end) = (fragment.offset, fragment.end());
        if self.ranges.iter().any(|(from, to)| *from <= start && end <= *to) {
            return false;
        }
        if self.pieces.len() == MOST_PIECES {
            return true;
        }
        self.pieces.push((start, fragment.bytes.to_vec()));
        let (mut from, mut to) = (start, end);
        self.ranges.retain(|range| {
            let is_apart = range.1 < from || to < range.0;
            if !is_apart {
                from = from.min(range.0);
                to = to.max(range.1);
            }
            is_apart
        });
        self.ranges.push((from, to));
        self.ranges.sort_unstable();
        true
    }

    /// The message, zeros where bytes were not at hand.
    fn body(&self) -> Vec<u8> {
        let mut body = vec![0; self.length];
        for (start, bytes) in &self.pieces {
            if let Some(place) = body.get_mut(*start..start + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(offset: usize, bytes: &[u8]) -> Fragment<'_> {
        Fragment { kind: 11, message_seq: 2, length: 6, offset, fragment_length: bytes.len(), bytes }
    }

    #[test]
    fn fragments_make_a_message_in_any_order_and_once() {
        let mut reassembly = Reassembly::default();

        assert_eq!(Added { is_new: true, whole: None }, reassembly.add(&fragment(4, &[4, 5])));
        assert_eq!(Added::default(), reassembly.add(&fragment(4, &[4])));
        assert_eq!(Added { is_new: true, whole: None }, reassembly.add(&fragment(0, &[0, 1])));
        let whole = reassembly.add(&fragment(1, &[1, 2, 3, 4]));
        assert_eq!(Some(&[0, 1, 2, 3, 4, 5][..]), whole.whole.as_deref());
        assert_eq!(Added::default(), reassembly.add(&fragment(0, &[0, 1])));
    }
}
