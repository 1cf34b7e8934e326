//! Which sequence numbers have come, as RFC 6347 §4.1.2.6 tells replayed records: the last 64 of two epochs.

/// The windows of one sender: its epoch and the one before or behind it.
#[derive(Debug, Default)]
pub struct Windows([Window; 2]);

#[derive(Debug, Default)]
struct Window {
    epoch: u16,
    /// Highest sequence number so far.
    highest: u64,
    /// Bit n: `highest` − n has come.
    seen: u64,
}

impl Windows {
    /// Whether this record has come before; from now on it has.
    #[inline]
    pub fn is_replayed(&mut self, epoch: u16, sequence_number: u64) -> bool {
        let [even, odd] = &mut self.0;
        let window = if epoch & 1 == 0 { even } else { odd };
        if window.epoch != epoch {
            *window = Window { epoch, ..Window::default() };
        }
        window.is_replayed(sequence_number)
    }
}

impl Window {
    #[inline]
    fn is_replayed(&mut self, number: u64) -> bool {
        if self.seen == 0 || number > self.highest {
            let step = u32::try_from(number.saturating_sub(self.highest)).unwrap_or(u32::MAX);
            self.seen = self.seen.checked_shl(step).unwrap_or(0) | 1;
            self.highest = number;
            return false;
        }
        let Some(bit) = u32::try_from(self.highest - number).ok().and_then(|back| 1_u64.checked_shl(back)) else { return false };
        let is_replayed = self.seen & bit != 0;
        self.seen |= bit;
        is_replayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_replayed_only_within_their_epoch() {
        let mut windows = Windows::default();
        let came = [(0, 5), (0, 7), (0, 6), (1, 6), (0, 6), (0, 200), (0, 7), (1, 6)];
        let replayed: Vec<bool> = came.into_iter().map(|(epoch, number)| windows.is_replayed(epoch, number)).collect();

        assert_eq!(vec![false, false, false, false, true, false, false, true], replayed);
    }
}
