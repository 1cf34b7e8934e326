//! Measured times of a session: exact as long as they are few, then in bins whose width is a known fraction of the value.

use rustc_hash::FxHashMap;

/// Samples kept one by one; when there are more, all so far are counted in bins together, which costs less than one at a time.
const EXACT: usize = 1024;
/// Bins for each doubling of the value: a bin's middle is within 1 / (2 · 1024) = 0.05 % of every value in it.
const BINS: u64 = 1024;

/// The samples of one measured time, in nanoseconds. There may be many of these, of a few samples each: so it is small, and nothing is summed
/// up as long as every sample is at hand.
#[derive(Debug, Default)]
pub struct Samples {
    /// Those from 0 to 4.29 s, the common case, in half the memory.
    short: Vec<u32>,
    more: Option<Box<More>>,
    /// Left out, since the message was sent again (Karn; trap 8).
    pub retransmitted: u32,
}

/// What is not common: long and negative times, and what is counted in bins.
#[derive(Debug, Default)]
struct More {
    others: Vec<i64>,
    bins: FxHashMap<i64, u32>,
    binned: Sums,
}

/// What the samples add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// Samples.
    pub count: u64,
    /// Negative ones among them.
    pub negative: u64,
    sum: i128,
    sum_of_squares: u128,
    /// Smallest.
    pub min_ns: i64,
    /// Largest.
    pub max_ns: i64,
}

impl Default for Sums {
    fn default() -> Self {
        Self { count: 0, negative: 0, sum: 0, sum_of_squares: 0, min_ns: i64::MAX, max_ns: i64::MIN }
    }
}

impl Samples {
    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, time_ns: i64) {
        match u32::try_from(time_ns) {
            Ok(short) => self.short.push(short),
            Err(_) => self.more.get_or_insert_default().others.push(time_ns),
        }
        if self.short.len() > EXACT || self.more.as_ref().is_some_and(|more| more.others.len() > EXACT) {
            self.count_in_bins();
        }
    }

    #[cold]
    fn count_in_bins(&mut self) {
        let more = self.more.get_or_insert_default();
        let others = std::mem::take(&mut more.others);
        for time_ns in self.short.drain(..).map(i64::from).chain(others) {
            *more.bins.entry(bin(time_ns)).or_insert(0) += 1;
            more.binned.add(time_ns);
        }
    }

    /// Adds all of them up.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let mut sums = self.more.as_ref().map_or_else(Sums::default, |more| more.binned);
        self.each(|time_ns| sums.add(time_ns));
        sums
    }

    /// Calls for each sample that is kept by itself.
    fn each(&self, mut call: impl FnMut(i64)) {
        self.short.iter().for_each(|&short| call(short.into()));
        self.more.iter().flat_map(|more| &more.others).for_each(|&other| call(other));
    }

    /// The values at these fractions of the sorted samples. 0.5 is the median (mean of the middle two where their number is even), others are
    /// by nearest rank.
    #[must_use]
    pub fn quantiles(&self, fractions: &[f64]) -> Vec<i64> {
        let Sums { count, min_ns, max_ns, .. } = self.sums();
        let mut sorted: Vec<(i64, u32)> = self.more.iter().flat_map(|more| &more.bins).map(|(&value, &count)| (value, count)).collect();
        let is_exact = sorted.is_empty();
        self.each(|time_ns| sorted.push((time_ns, 1)));
        sorted.sort_unstable();
        let limit = |value: i64| value.clamp(min_ns, max_ns);
        let at = |rank: usize| if is_exact { sorted.get(rank).map(|(value, _)| *value) } else { in_bins(&sorted, rank).map(limit) };
        fractions.iter().map(|&fraction| pick(fraction, count, at)).collect()
    }
}

impl Sums {
    fn add(&mut self, time_ns: i64) {
        self.count += 1;
        self.negative += u64::from(time_ns < 0);
        self.sum += i128::from(time_ns);
        self.sum_of_squares += u128::from(time_ns.unsigned_abs()).pow(2);
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
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
        let sums = five.sums();
        assert_eq!((150, 10, 50), (sums.sum_ns(), sums.min_ns, sums.max_ns));
        assert!((sums.squared_deviations_ns2() - 1000.0).abs() < 1e-9);
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
