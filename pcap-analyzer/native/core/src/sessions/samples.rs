//! Measured times of a session: exact as long as they are few, then in bins whose width is a known fraction of the value.

use crate::exchanges::Timing;
use crate::message::is_same_word;

/// Samples kept one by one; when there are more, all so far are counted in bins together, which costs less than one at a time.
const EXACT: usize = 1024;
/// Samples that are put with the others at once: as many as one line of the processor's cache has room for.
const RECENT: usize = 4;
/// Samples that stand together beyond the recent ones.
const TOGETHER: usize = 4 * RECENT;
/// Bins for each doubling of the value: a bin's middle is within 1 / (2 · 1024) = 0.05 % of every value in it.
const BINS: u32 = 1024;

/// Samples of one time of one kind of exchange; in one line of the processor's cache.
#[derive(Debug)]
#[repr(align(64))]
pub struct Measured {
    /// Which time.
    pub timing: Timing,
    /// Kind of exchange; empty for TCP's times.
    pub kind: &'static str,
    /// The samples.
    pub samples: Samples,
}

impl Measured {
    /// Whether samples of this time and kind of exchange go here.
    #[inline]
    pub(super) fn is_of(&self, timing: Timing, kind: &'static str) -> bool {
        self.timing == timing && is_same_word(self.kind, kind)
    }
}

/// The samples of one measured time, in nanoseconds. There may be many of these, of a few samples each: so it is small, and nothing is summed
/// up as long as every sample is at hand.
#[derive(Debug, Default)]
pub struct Samples {
    /// The last few, here: so the room that the others have elsewhere is not fetched for every sample.
    recent: [Recent; RECENT],
    recents: u8,
    /// Left out, since the message was sent again (Karn; trap 8).
    pub retransmitted: u32,
    more: Option<Box<More>>,
}

/// A time within 39 hours of zero in six bytes: its lower part, which is the whole of one from 0 to 4.29 s, and its upper part.
type Recent = [u16; 3];

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#[inline]
fn pack(time_ns: i64) -> Option<Recent> {
    let packed = [time_ns as u16, (time_ns >> 16) as u16, (time_ns >> 32) as u16];
    (unpack(packed) == time_ns).then_some(packed)
}

#[inline]
fn unpack([low, middle, high]: Recent) -> i64 {
    i64::from(high.cast_signed()) << 32 | i64::from(middle) << 16 | i64::from(low)
}

/// Samples that came before the recent ones. What is full stays where it is, and the next ones go elsewhere: nothing is moved to make room.
#[derive(Debug, Default)]
struct More {
    before: Option<Box<Self>>,
    rest: Option<Box<Rest>>,
    /// How many there are, with those before.
    count: u32,
    samples: [Recent; TOGETHER],
}

/// Samples that do not stand by themselves in six bytes.
#[derive(Debug, Default)]
struct Rest {
    /// Those further than 39 hours from zero.
    far: Vec<i64>,
    binned: Option<Binned>,
}

/// What is counted in bins.
#[derive(Debug, Default)]
struct Binned {
    /// Bins by number with their counts, in order.
    bins: Vec<(i32, u32)>,
    sums: Sums,
}

/// What samples add up to.
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
        let Some(packed) = pack(time_ns) else { return self.add_far(time_ns) };
        if usize::from(self.recents) == RECENT {
            self.put_by();
        }
        if let Some(place) = self.recent.get_mut(usize::from(self.recents)) {
            *place = packed;
            self.recents += 1;
        }
    }

    /// Reads a little of where the recent ones go next, where that is soon.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        let is_full = usize::from(self.recents) == RECENT;
        self.more.as_ref().filter(|_| is_full).map_or(0, |more| more.count.into())
    }

    /// Puts the recent ones with those before them.
    fn put_by(&mut self) {
        self.recents = 0;
        let before = self.more.take_if(|more| more.is_full());
        let more = self.more.get_or_insert_with(|| Box::new(More::behind(before)));
        more.take(&self.recent);
        if more.count as usize >= EXACT {
            self.count_in_bins();
        }
    }

    #[cold]
    fn add_far(&mut self, time_ns: i64) {
        let rest = self.more.get_or_insert_default().rest.get_or_insert_default();
        rest.far.push(time_ns);
        if rest.far.len() >= EXACT {
            self.count_in_bins();
        }
    }

    #[cold]
    fn count_in_bins(&mut self) {
        let mut times_ns: Vec<i64> = self.put_by_samples().collect();
        times_ns.sort_unstable();
        let mut rest = self.more.take().and_then(|more| more.rest).unwrap_or_default();
        let binned = rest.binned.get_or_insert_default();
        times_ns.iter().for_each(|&time_ns| binned.sums.add(time_ns));
        binned.bins = add_to_bins(&binned.bins, times_ns.into_iter().map(bin));
        rest.far.clear();
        self.more = Some(Box::new(More { rest: Some(rest), ..More::default() }));
    }

    fn binned(&self) -> Option<&Binned> {
        self.more.as_ref()?.rest.as_ref()?.binned.as_ref()
    }

    /// Each sample that is kept by itself, but the recent ones.
    fn put_by_samples(&self) -> impl Iterator<Item = i64> + '_ {
        let all = std::iter::successors(self.more.as_deref(), |more| more.before.as_deref());
        let rest = self.more.iter().flat_map(|more| &more.rest);
        all.flat_map(More::here).chain(rest.flat_map(|rest| &rest.far).copied())
    }

    /// Each sample that is kept by itself.
    fn each(&self) -> impl Iterator<Item = i64> + '_ {
        self.recent.iter().take(self.recents.into()).map(|&recent| unpack(recent)).chain(self.put_by_samples())
    }
}

impl More {
    /// Room behind those before.
    fn behind(mut before: Option<Box<Self>>) -> Self {
        let count = before.as_ref().map_or(0, |before| before.count);
        let rest = before.as_mut().and_then(|before| before.rest.take());
        Self { before, rest, count, samples: Default::default() }
    }

    const fn is_full(&self) -> bool {
        self.count > 0 && (self.count as usize).is_multiple_of(TOGETHER)
    }

    /// Takes samples for which there is room.
    fn take(&mut self, recent: &[Recent; RECENT]) {
        let places = self.samples.iter_mut().skip(self.count as usize % TOGETHER);
        places.zip(recent).for_each(|(place, sample)| *place = *sample);
        self.count += RECENT as u32;
    }

    /// The samples that stand here.
    fn here(&self) -> impl Iterator<Item = i64> + '_ {
        let count = if self.is_full() { TOGETHER } else { self.count as usize % TOGETHER };
        self.samples.iter().take(count).map(|&sample| unpack(sample))
    }
}

/// Bins, in order, with the bins of more samples, in order, counted too.
fn add_to_bins(bins: &[(i32, u32)], new: impl Iterator<Item = i32>) -> Vec<(i32, u32)> {
    let mut sums: Vec<(i32, u32)> = Vec::with_capacity(bins.len() + EXACT);
    let mut known = bins.iter().copied().peekable();
    for bin in new {
        while let Some(before) = known.next_if(|(number, _)| *number <= bin) {
            sums.push(before);
        }
        match sums.last_mut() {
            Some((number, count)) if *number == bin => *count += 1,
            _ => sums.push((bin, 1)),
        }
    }
    sums.extend(known);
    sums.shrink_to_fit();
    sums
}

/// Adds all samples up.
#[must_use]
pub fn sums(samples: &[&Samples]) -> Sums {
    let mut sums = Sums::default();
    for samples in samples {
        if let Some(binned) = samples.binned() {
            sums.absorb(&binned.sums);
        }
        samples.each().for_each(|time_ns| sums.add(time_ns));
    }
    sums
}

/// The values at these fractions of the sorted samples. 0.5 is the median (mean of the middle two where their number is even), others are
/// by nearest rank.
#[must_use]
pub fn quantiles(samples: &[&Samples], fractions: &[f64]) -> Vec<i64> {
    let Sums { count, min_ns, max_ns, .. } = sums(samples);
    let bins = samples.iter().filter_map(|samples| samples.binned()).flat_map(|binned| &binned.bins);
    let mut sorted: Vec<(i64, u32)> = bins.map(|&(bin, count)| (middle(bin), count)).collect();
    let is_exact = sorted.is_empty();
    sorted.extend(samples.iter().flat_map(|samples| samples.each()).map(|time_ns| (time_ns, 1)));
    sorted.sort_unstable();
    let limit = |value: i64| value.clamp(min_ns, max_ns);
    let at = |rank: usize| if is_exact { sorted.get(rank).map(|(value, _)| *value) } else { in_bins(&sorted, rank).map(limit) };
    fractions.iter().map(|&fraction| pick(fraction, count, at)).collect()
}

impl Sums {
    fn add(&mut self, time_ns: i64) {
        self.count += 1;
        self.negative += u64::from(time_ns < 0);
        self.sum += i128::from(time_ns);
        self.sum_of_squares = self.sum_of_squares.saturating_add(u128::from(time_ns.unsigned_abs()).pow(2));
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }

    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.negative += other.negative;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
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

/// The number of a value's bin. Values below 2 · `BINS` have bins of their own; then there are `BINS` of them for each doubling.
#[allow(clippy::cast_possible_truncation)]
fn bin(time_ns: i64) -> i32 {
    let magnitude = time_ns.unsigned_abs();
    let shift = (magnitude | u64::from(BINS)).ilog2() - BINS.ilog2();
    ((shift * BINS) as i32 + (magnitude >> shift) as i32) * time_ns.signum() as i32
}

/// The value in the middle of a bin.
fn middle(bin: i32) -> i64 {
    let number = bin.unsigned_abs();
    let shift = (number / BINS).saturating_sub(1);
    let middle = (u64::from(number - shift * BINS) << shift) + (1 << shift >> 1);
    i64::try_from(middle).unwrap_or(i64::MAX) * i64::from(bin.signum())
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

        assert_eq!(vec![30, 50, 50], quantiles(&[&five], &[0.5, 0.95, 0.99]));
        let sums = sums(&[&five]);
        assert_eq!((150, 10, 50), (sums.sum_ns(), sums.min_ns, sums.max_ns));
        assert!((sums.squared_deviations_ns2() - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn no_time_at_all_is_not_negative() {
        assert_eq!(1, sums(&[&samples(&[0, -1, 1])]).negative);
    }

    #[test]
    fn samples_of_a_kind_are_many_and_take_one_line() {
        assert_eq!(64, size_of::<Measured>());
    }

    #[test]
    fn median_of_an_even_number_is_between_the_middle_two_of_all_sets() {
        assert_eq!(vec![25], quantiles(&[&samples(&[10, 20]), &samples(&[30, 40])], &[0.5]));
    }

    proptest! {
        #[test]
        fn a_time_is_packed_or_too_long(time_ns in prop_oneof![-1i64 << 50..1i64 << 50, any::<i64>()]) {
            let is_short = (-1i64 << 47..1i64 << 47).contains(&time_ns);
            prop_assert_eq!(is_short.then_some(time_ns), pack(time_ns).map(unpack));
        }

        #[test]
        fn a_bin_holds_its_middle_and_is_narrow(time_ns: i64) {
            let (time_ns, number) = (time_ns >> 1, bin(time_ns >> 1));
            prop_assert_eq!(number, bin(middle(number)));
            prop_assert!((middle(number) - time_ns).unsigned_abs() <= time_ns.unsigned_abs() / 2048);
        }

        #[test]
        fn every_sample_counts_once(times in proptest::collection::vec(
            prop_oneof![6 => 0i64..1_000_000, 1 => -1_000_000_000_000i64..0, 1 => any::<i64>().prop_map(|time| time >> 2)], 0..2500,
        )) {
            let sums = sums(&[&samples(&times)]);
            let (min_ns, max_ns) = (times.iter().min(), times.iter().max());
            prop_assert_eq!((times.len() as u64, times.iter().map(|&time| i128::from(time)).sum()), (sums.count, sums.sum));
            prop_assert!(times.is_empty() || (min_ns, max_ns) == (Some(&sums.min_ns), Some(&sums.max_ns)));
        }

        #[test]
        fn binned_quantiles_are_within_their_error(mut times in proptest::collection::vec(-10_000_000_000i64..10_000_000_000, 2000..3000)) {
            let binned = quantiles(&[&samples(&times)], &[0.95]);
            times.sort_unstable();
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let exact = times[(0.95 * times.len() as f64).ceil() as usize - 1];
            prop_assert!((binned[0] - exact).unsigned_abs() <= exact.unsigned_abs() / 2048 + 1);
        }
    }
}
