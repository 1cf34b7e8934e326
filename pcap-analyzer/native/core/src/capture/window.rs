//! A sliding window over a byte stream: bytes are looked at in place and released from the front; nothing is mapped, nothing is read twice.

use std::io::{ErrorKind, Read};

use super::Trouble;

/// Bytes of a file or pipe between what has been released and what has been read so far.
pub(super) struct Window {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the stream of `buffer[start]`.
    offset: u64,
    finished: bool,
}

impl Window {
    /// A window that reads blocks of `block_bytes` from `reader`.
    pub(super) fn new(reader: Box<dyn Read + Send>, block_bytes: usize) -> Self {
        Self { reader, buffer: vec![0; block_bytes.max(64)], start: 0, end: 0, offset: 0, finished: false }
    }

    /// The bytes at hand.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or(&[])
    }

    /// Offset in the stream of the first byte at hand.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether `count` bytes are at hand, after reading as much as it takes; false where the stream ends before.
    #[inline]
    pub(super) fn need(&mut self, count: usize) -> Result<bool, Trouble> {
        if self.end - self.start >= count {
            return Ok(true);
        }
        self.fill(count)
    }

    /// Like [`Window::need`], but a stream that ends before is cut short inside `what`.
    #[inline]
    pub(super) fn demand(&mut self, count: usize, what: &'static str) -> Result<(), Trouble> {
        if self.need(count)? {
            return Ok(());
        }
        Err(Trouble::Cut { what, needed: count, left: self.bytes().len() })
    }

    /// Releases `count` bytes of those at hand and returns where they stand, for [`Window::slice`].
    #[inline]
    pub(super) fn release(&mut self, count: usize) -> usize {
        let at = self.start;
        self.start = (self.start + count).min(self.end);
        self.offset += (self.start - at) as u64;
        at
    }

    /// Released bytes, good until the next read.
    #[inline]
    pub(super) fn slice(&self, at: usize, count: usize) -> &[u8] {
        self.buffer.get(at..at.saturating_add(count)).unwrap_or(&[])
    }

    /// Passes over `count` bytes, however many; false where the stream ends before.
    pub(super) fn skip(&mut self, mut count: u64) -> Result<bool, Trouble> {
        loop {
            let step = usize::try_from(count).unwrap_or(usize::MAX).min(self.bytes().len());
            self.release(step);
            count -= step as u64;
            if count == 0 {
                return Ok(true);
            }
            if !self.need(1)? {
                return Ok(false);
            }
        }
    }

    /// The rest of the stream as a reader, the bytes at hand first.
    pub(super) fn into_reader(self) -> Box<dyn Read + Send> {
        let rest = self.bytes().to_vec();
        Box::new(std::io::Cursor::new(rest).chain(self.reader))
    }

    /// Reads until `count` bytes are at hand. The buffer grows with the bytes that really come, never by a claim.
    #[cold]
    fn fill(&mut self, count: usize) -> Result<bool, Trouble> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < count && !self.finished {
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let Some(room) = self.buffer.get_mut(self.end..) else {
                break;
            };
            match self.reader.read(room) {
                Ok(0) => self.finished = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.finished = true;
                    return Err(Trouble::Read(error));
                }
            }
        }
        Ok(self.end >= count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a read, as a slow pipe does.
    struct Drip(Vec<u8>);

    impl Read for Drip {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            into[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn reads_what_is_needed_and_tells_the_end() {
        let mut window = Window::new(Box::new(Drip((0..100).collect())), 1);

        assert!(window.need(90).unwrap());
        let at = window.release(90);
        assert_eq!((0..90).collect::<Vec<u8>>(), window.slice(at, 90));
        assert_eq!(90, window.offset());
        assert!(!window.need(11).unwrap());
        assert_eq!((90..100).collect::<Vec<u8>>(), window.bytes());
        assert!(!window.skip(11).unwrap());
        assert_eq!(100, window.offset());
    }
}
