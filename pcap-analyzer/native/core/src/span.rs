//! Byte ranges that remember their frames, and the sharing of a frame's headers among its messages so that the parts add up.

use crate::packet::Headers;
use std::num::NonZeroU16;
use std::ops::Deref;

/// What bytes remember of the packet that brought them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Frame that completes the packet.
    pub frame: u64,
    /// First frame of the packet, an earlier one where it was fragmented.
    pub frame_first: u64,
    /// Which input.
    pub file: u16,
    /// IP identification (IPv4), to tell a packet captured twice, or doubled on its way, from one sent twice (trap 7).
    pub ip_identification: Option<NonZeroU16>,
    /// Capture time of `frame`.
    pub time_ns: i64,
    /// Capture time of `frame_first`.
    pub time_first_ns: i64,
    /// What the packet's frames hold beside the payload.
    pub headers: Headers,
    /// Length of the packet's payload on the wire in bytes; the captured payload may be shorter (snap length), never longer.
    pub payload_bytes: u32,
}

impl Origin {
    /// The packet's whole payload.
    #[inline]
    #[must_use]
    pub const fn whole(&self) -> Piece<'_> {
        self.piece(0, self.payload_bytes)
    }

    /// The bytes `from..to` of the packet's payload.
    #[inline]
    #[must_use]
    pub const fn piece(&self, from: u32, to: u32) -> Piece<'_> {
        Piece { origin: self, edges: (to as u64) << 32 | from as u64 }
    }
}

/// A run of payload bytes of one packet: the bytes `from..to` of its payload. What is remembered of the packet is had by `Deref`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Where the bytes come from.
    pub origin: &'a Origin,
    /// Start and end of the run in one word: so a piece is two words, which travel in registers.
    edges: u64,
}

impl Deref for Piece<'_> {
    type Target = Origin;
    #[inline]
    fn deref(&self) -> &Origin {
        self.origin
    }
}

impl Piece<'_> {
    /// Start of the run.
    #[inline]
    #[must_use]
    pub const fn from(&self) -> u32 {
        (self.edges & u32::MAX as u64) as u32
    }

    /// End of the run.
    #[inline]
    #[must_use]
    pub const fn to(&self) -> u32 {
        (self.edges >> 32) as u32
    }

    /// Bytes of the run.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.to() - self.from()
    }

    /// Whether the run has no byte.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.to() == self.from()
    }

    /// Whether it is the packet's whole payload.
    #[inline]
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.len() == self.payload_bytes
    }

    /// Splits the run `at` bytes after its start (at most its length).
    #[inline]
    #[must_use]
    pub fn split(&self, at: u32) -> (Self, Self) {
        let middle = self.from() + at.min(self.len());
        (self.origin.piece(self.from(), middle), self.origin.piece(middle, self.to()))
    }

    /// The run's share of the packet's headers, in proportion to its bytes. The shares of the runs that make up the payload add up to the headers
    /// exactly. A packet without payload gives all to its only (empty) run.
    #[inline]
    #[must_use]
    pub fn share(&self) -> Headers {
        if self.is_whole() {
            return self.headers;
        }
        let (from, to, total) = (u64::from(self.from()), u64::from(self.to()), u64::from(self.payload_bytes));
        let part = |whole| share_of(whole, from, to, total);
        Headers {
            link_bytes: part(self.headers.link_bytes),
            padding_bytes: part(self.headers.padding_bytes),
            ip_bytes: part(self.headers.ip_bytes),
            transport_bytes: part(self.headers.transport_bytes),
            security_bytes: part(self.headers.security_bytes),
            carrier_bytes: part(self.headers.carrier_bytes),
            compressed_bytes: part(self.headers.compressed_bytes),
        }
    }
}

/// What the run `from..to` of `total` bytes has of `whole` bytes, in proportion. The shares of runs that make up the total add up to the whole exactly:
/// each edge between two runs is rounded down, and a share is the distance of its edges.
#[inline]
#[must_use]
pub fn share_of(whole: u32, from: u64, to: u64, total: u64) -> u32 {
    let edge = |at: u64| u64::from(whole) * at / total;
    u32::try_from(edge(to) - edge(from)).unwrap_or(whole)
}

/// Adds header bytes up.
#[inline]
pub fn add(sum: &mut Headers, more: &Headers) {
    sum.link_bytes += more.link_bytes;
    sum.padding_bytes += more.padding_bytes;
    sum.ip_bytes += more.ip_bytes;
    sum.transport_bytes += more.transport_bytes;
    sum.security_bytes += more.security_bytes;
    sum.carrier_bytes += more.carrier_bytes;
    sum.compressed_bytes += more.compressed_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin(headers: Headers, total: u32) -> Origin {
        Origin { frame: 1, frame_first: 1, headers, payload_bytes: total, ..Origin::default() }
    }

    #[test]
    fn three_messages_share_66_header_bytes_by_their_length() {
        let headers = Headers { link_bytes: 14, padding_bytes: 0, ip_bytes: 20, transport_bytes: 32, ..Headers::default() };
        let origin = origin(headers, 30);
        let (first, rest) = origin.whole().split(10);
        let (second, third) = rest.split(5);

        // 14 * 10 / 30 = 4.67 → 4; 14 * 15 / 30 = 7 → 7 - 4 = 3; the rest is 7
        assert_eq!([4, 3, 7], [first, second, third].map(|run| run.share().link_bytes));
        assert_eq!([10, 6, 16], [first, second, third].map(|run| run.share().transport_bytes));
    }

    proptest! {
        #[test]
        fn shares_add_up(link in 0u32..5000, ip in 0u32..100, total in 1u32..70000, cuts in proptest::collection::vec(0u32..70000, 0..6)) {
            let headers = Headers { link_bytes: link, padding_bytes: 3, ip_bytes: ip, transport_bytes: 32, ..Headers::default() };
            let origin = origin(headers, total);
            let mut rest = origin.whole();
            let mut sum = Headers::default();
            let mut edges: Vec<u32> = cuts.into_iter().map(|cut| cut % total).collect();
            edges.sort_unstable();
            for edge in edges {
                let (run, after) = rest.split(edge.saturating_sub(rest.from()));
                add(&mut sum, &run.share());
                rest = after;
            }
            add(&mut sum, &rest.share());
            prop_assert_eq!(sum, headers);
        }
    }
}
