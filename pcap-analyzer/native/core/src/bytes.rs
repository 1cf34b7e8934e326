//! The cursor all decoders read with: each read says, when it fails, where it stood and how many bytes it wanted.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// A hash of bytes for finding equal ones within one run; never 0.
#[inline]
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish() | 1
}

/// A length as a column holds it.
#[inline]
#[must_use]
pub fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// A read that went beyond the bytes at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Where the read began, counted from the start of the cursor's bytes.
    pub offset: usize,
    /// How many bytes from the start of the cursor's bytes the read needs.
    pub needed: usize,
}

/// Reads big-endian values one after another from a slice.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first byte of `bytes`.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// How many bytes have been read.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes that have not been read yet.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or(&[])
    }

    /// Whether all bytes have been read.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.offset >= self.bytes.len()
    }

    /// The next byte, not consumed.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Short`] where fewer are left.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let end = self.offset.saturating_add(count);
        let taken = self.bytes.get(self.offset..end).ok_or(Short { offset: self.offset, needed: end })?;
        self.offset = end;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Short`] where fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let at = self.offset;
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Short { offset: at, needed: at.saturating_add(N) })
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Short`] where none is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Short> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    /// Two bytes, most significant first.
    ///
    /// # Errors
    /// [`Short`] where fewer are left.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Short> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Three bytes, most significant first.
    ///
    /// # Errors
    /// [`Short`] where fewer are left.
    #[inline]
    pub fn u24(&mut self) -> Result<u32, Short> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_be_bytes([0, a, b, c]))
    }

    /// Four bytes, most significant first.
    ///
    /// # Errors
    /// [`Short`] where fewer are left.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Short> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Eight bytes, most significant first.
    ///
    /// # Errors
    /// [`Short`] where fewer are left.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Short> {
        Ok(u64::from_be_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_says_what_is_missing() {
        let mut cursor = Cursor::new(&[1, 2, 3, 4, 5, 6]);

        assert_eq!(Ok(1), cursor.u8());
        assert_eq!(Ok(0x0002_0304), cursor.u24());
        assert_eq!(Err(Short { offset: 4, needed: 8 }), cursor.u32());
        assert_eq!(Ok(0x0506), cursor.u16());
        assert!(cursor.is_empty());
    }
}
