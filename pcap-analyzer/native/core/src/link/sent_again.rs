//! Frames that the link layer sends again because no acknowledgement came (IEEE 802.15.4-2006 §7.5.6.4.3): they are as they were, sequence number and all.

use crate::packet::COPY_NS;
use std::collections::VecDeque;

/// How long after a frame the same one can be sent again: a slotted link has a turn a second (RFC 8180 §4.5.2), and CoAP itself waits two (RFC 7252 §4.8).
const PATIENCE_NS: u64 = 1_500_000_000;
/// Frames that are remembered: more than all neighbours that can be heard have under way.
const MOST: usize = 64;

/// The frames that were sent lately, by time and digest.
#[derive(Debug, Default)]
pub struct SentLately(VecDeque<(i64, u64)>);

impl SentLately {
    /// Whether a frame is sent again, and not just captured twice.
    pub fn has(&mut self, digest: u64, time_ns: i64) -> bool {
        self.0.retain(|(before_ns, _)| time_ns.abs_diff(*before_ns) < PATIENCE_NS);
        let Some((before_ns, _)) = self.0.iter_mut().find(|(_, before)| *before == digest) else {
            self.0.truncate(MOST - 1);
            self.0.push_front((time_ns, digest));
            return false;
        };
        let is_again = time_ns.abs_diff(*before_ns) >= COPY_NS;
        if is_again {
            *before_ns = time_ns;
        }
        is_again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_same_frame_is_sent_again_a_while_later_and_captured_twice_at_once() {
        let mut lately = SentLately::default();

        let seen = [(0, 1), (0, 2), (5 * MS, 1), (5 * MS + 1, 1), (1_400 * MS, 1), (2_800 * MS, 1), (2_800 * MS, 2), (4_400 * MS, 1)];
        assert_eq!([false, false, true, false, true, true, false, false], seen.map(|(time_ns, digest)| lately.has(digest, time_ns)));
    }

    #[test]
    fn few_frames_are_remembered() {
        let mut lately = SentLately::default();
        assert!((0..1_000).all(|digest| !lately.has(digest, 0)));

        assert_eq!((MOST, false, true), (lately.0.len(), lately.has(900, 2 * MS), lately.has(999, 2 * MS)));
    }
}
