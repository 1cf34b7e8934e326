//! Measured times of a session: exact as long as they are few, then in bins whose width is a known fraction of the value.

use rustc_hash::FxHashMap;

/// Samples kept one by one; above this many they are counted in bins.
const EXACT: usize = 1024;
/// Bins for each doubling of the value: a bin's middle is within 1 / (2 · 1024) = 0.05 % of every value in it.
const BINS: u64 = 1024;

#[derive(Debug)]
enum Kept {
    /// Samples from 0 to 4.29 s, the common case, in half the memory.
    Small(Vec<u32>),
    Exact(Vec<i64>),
    Binned(FxHashMap<i64, u32>),
}

/// Sums and order statistics of one measured time, in nanoseconds.
#[derive(Debug)]
pub struct Samples {
    kept: Kept,
    /// Samples.
    pub count: u64,
    /// Left out, since the message was sent again (Karn; trap 8).
    pub retransmitted: u64,
    /// Negative ones among the samples.
    pub negative: u64,
    sum: i128,
    sum_of_squares: u128,
    /// Smallest.
    pub min_ns: i64,
    /// Largest.
    pub max_ns: i64,
}

impl Default for Samples {
    fn default() -> Self {
        let kept = Kept::Small(Vec::new());
        Self { kept, count: 0, retransmitted: 0, negative: 0, sum: 0, sum_of_squares: 0, min_ns: i64::MAX, max_ns: i64::MIN }
    }
}

impl Samples {
    /// Adds a sample.
    pub fn add(&mut self, time_ns: i64) {
        self.count += 1;
        self.negative += u64::from(time_ns < 0);
        self.sum += i128::from(time_ns);
        self.sum_of_squares += u128::from(time_ns.unsigned_abs()).pow(2);
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
        self.keep(time_ns);
    }

    fn keep(&mut self, time_ns: i64) {
        match &mut self.kept {
            Kept::Small(samples) => match u32::try_from(time_ns) {
                Ok(small) if samples.len() < EXACT => samples.push(small),
                _ => {
                    let widened = samples.iter().map(|&small| i64::from(small)).collect();
                    self.kept = Kept::Exact(widened);
                    self.keep(time_ns);
                }
            },
            Kept::Exact(samples) if samples.len() < EXACT => samples.push(time_ns),
            Kept::Exact(samples) => {
                let mut bins = FxHashMap::default();
                for &sample in samples.iter().chain([&time_ns]) {
                    *bins.entry(bin(sample)).or_insert(0) += 1;
                }
                self.kept = Kept::Binned(bins);
            }
            Kept::Binned(bins) => *bins.entry(bin(time_ns)).or_insert(0) += 1,
        }
    }

    /// Sum of the samples.
    #[must_use]
    pub fn sum_ns(&self) -> i64 {
        i64::try_from(self.sum).unwrap_or(i64::MAX)
    }

    /// Sum of squared deviations from the mean, from exact integer sums.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn squared_deviations_ns2(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let count = i128::from(self.count);
        let squares = i128::try_from(self.sum_of_squares).unwrap_or(i128::MAX);
        let scaled = squares.checked_mul(count).zip(self.sum.checked_mul(self.sum)).map(|(squares, square)| squares - square);
        scaled.map_or(f64::INFINITY, |scaled| scaled as f64 / count as f64)
    }

    /// The values at these fractions of the sorted samples. 0.5 is the median (mean of the middle two where their number is even), others are
    /// by nearest rank.
    #[must_use]
    pub fn quantiles(&self, fractions: &[f64]) -> Vec<i64> {
        match &self.kept {
            Kept::Small(samples) => {
                let mut sorted: Vec<i64> = samples.iter().map(|&small| i64::from(small)).collect();
                sorted.sort_unstable();
                fractions.iter().map(|&fraction| pick(fraction, self.count, |rank| sorted.get(rank).copied())).collect()
            }
            Kept::Exact(samples) => {
                let mut sorted = samples.clone();
                sorted.sort_unstable();
                fractions.iter().map(|&fraction| pick(fraction, self.count, |rank| sorted.get(rank).copied())).collect()
            }
            Kept::Binned(bins) => {
                let limit = |value: i64| value.clamp(self.min_ns, self.max_ns);
                let mut sorted: Vec<(i64, u32)> = bins.iter().map(|(&value, &count)| (value, count)).collect();
                sorted.sort_unstable();
                fractions.iter().map(|&fraction| pick(fraction, self.count, |rank| in_bins(&sorted, rank).map(limit))).collect()
            }
        }
    }
}

/// The value at `fraction` of `count` sorted values, which `at` gives by rank from 0.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn pick(fraction: f64, count: u64, at: impl Fn(usize) -> Option<i64>) -> i64 {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    #[allow(clippy::float_cmp)]
    if fraction == 0.5 && count.is_multiple_of(2) && count > 0 {
        let (low, high) = (at(count / 2 - 1).unwrap_or(0), at(count / 2).unwrap_or(0));
        return low + (high - low) / 2;
    }
    let rank = (fraction * count as f64).ceil() as usize;
    at(rank.saturating_sub(1)).unwrap_or(0)
}

/// The bin's middle value, which names it.
fn bin(time_ns: i64) -> i64 {
    let magnitude = time_ns.unsigned_abs();
    if magnitude < 2 * BINS {
        return time_ns;
    }
    let shift = magnitude.ilog2() - BINS.ilog2();
    let middle = (magnitude >> shift << shift) + (1 << shift >> 1);
    i64::try_from(middle).unwrap_or(i64::MAX) * time_ns.signum()
}

/// The value at a rank of bins that are sorted by value.
fn in_bins(bins: &[(i64, u32)], rank: usize) -> Option<i64> {
    let mut before = 0;
    bins.iter().find_map(|&(value, count)| {
        before += count as usize;
        (rank < before).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(times: &[i64]) -> Samples {
        let mut samples = Samples::default();
        for &time in times {
            samples.add(time);
        }
        samples
    }

    #[test]
    fn five_samples_have_exact_statistics() {
        let five = samples(&[50, 20, 40, 30, 10]);

        assert_eq!(vec![30, 50, 50], five.quantiles(&[0.5, 0.95, 0.99]));
        assert_eq!((150, 10, 50), (five.sum_ns(), five.min_ns, five.max_ns));
        assert!((five.squared_deviations_ns2() - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(vec![25], samples(&[10, 20, 30, 40]).quantiles(&[0.5]));
    }

    proptest! {
        #[test]
        fn binned_quantiles_are_within_their_error(mut times in proptest::collection::vec(-10_000_000_000i64..10_000_000_000, 2000..3000)) {
            let binned = samples(&times).quantiles(&[0.95]);
            times.sort_unstable();
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let exact = times[(0.95 * times.len() as f64).ceil() as usize - 1];
            prop_assert!((binned[0] - exact).unsigned_abs() <= exact.unsigned_abs() / 2048 + 1);
        }
    }
}
