//! What is left of a frame when envelopes have been taken off: the captured bytes and how long they were on the wire.

/// The inside of an envelope. `captured` is a prefix of what was on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer<'a> {
    /// The captured bytes.
    pub captured: &'a [u8],
    /// Length on the wire in bytes, never less than `captured.len()`.
    pub wire_bytes: u32,
    /// Where `captured` begins in the bytes of the frame (or of the reassembled datagram).
    pub offset: usize,
}

impl<'a> Layer<'a> {
    /// All bytes of a frame or datagram.
    #[inline]
    #[must_use]
    pub const fn new(captured: &'a [u8], wire_bytes: u32) -> Self {
        Self { captured, wire_bytes, offset: 0 }
    }

    /// Without its first `count` bytes.
    #[inline]
    #[must_use]
    pub fn strip(self, count: usize) -> Self {
        Self {
            captured: self.captured.get(count..).unwrap_or(&[]),
            wire_bytes: self.wire_bytes.saturating_sub(count as u32),
            offset: self.offset + count.min(self.captured.len()),
        }
    }

    /// Without what is behind its first `wire_bytes` bytes.
    #[inline]
    #[must_use]
    pub fn cap(self, wire_bytes: u32) -> Self {
        Self {
            captured: self.captured.get(..wire_bytes as usize).unwrap_or(self.captured),
            wire_bytes: self.wire_bytes.min(wire_bytes),
            offset: self.offset,
        }
    }

    /// The first `N` bytes, where they were captured.
    #[inline]
    #[must_use]
    pub fn first<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.captured.first_chunk()
    }

    /// `N` bytes from `at`, where they were captured.
    #[inline]
    #[must_use]
    pub fn array<const N: usize>(&self, at: usize) -> Option<&'a [u8; N]> {
        self.captured.get(at..)?.first_chunk()
    }

    /// The 16-bit value at `at`, most significant byte first, where it was captured.
    #[inline]
    #[must_use]
    pub fn u16(&self, at: usize) -> Option<u16> {
        self.array(at).map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// The byte at `at`, where it was captured.
    #[inline]
    #[must_use]
    pub fn u8(&self, at: usize) -> Option<u8> {
        self.captured.get(at).copied()
    }

    /// Whether bytes at its end were not captured.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        (self.captured.len() as u64) < self.wire_bytes as u64
    }
}
