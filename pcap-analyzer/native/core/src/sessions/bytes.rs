//! Sums of bytes by part: there are many of these, so they are kept in little room.

use crate::message::Parts;

/// The nine parts of bytes on the wire, as sums.
pub type PartSums = [u64; 9];

/// Adds the parts of a message to sums.
#[inline]
pub fn add(sums: &mut PartSums, parts: &Parts) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += u64::from(*part);
    }
}

/// Adds sums to sums.
#[inline]
pub fn add_sums(sums: &mut PartSums, more: &PartSums) {
    for (sum, part) in sums.iter_mut().zip(more) {
        *sum += part;
    }
}

/// Sums by part that are here as long as all parts together are less than 4 GiB; what goes beyond, as sums of few sessions do, is carried over to a
/// place of its own.
#[derive(Debug, Default)]
pub struct ByteSums {
    low: Parts,
    /// Of all parts, so that no part has to be looked at by itself.
    low_total: u32,
    carried: Option<Box<Carried>>,
}

/// What was carried over.
#[derive(Debug, Default)]
struct Carried {
    parts: PartSums,
    messages: u64,
}

impl ByteSums {
    /// Adds the parts of a message.
    #[inline]
    pub fn add(&mut self, parts: &Parts) {
        let total = parts.iter().fold(u64::from(self.low_total), |total, part| total + u64::from(*part));
        let Ok(total) = u32::try_from(total) else { return self.carry(parts) };
        self.low_total = total;
        for (sum, part) in self.low.iter_mut().zip(parts) {
            *sum = sum.wrapping_add(*part);
        }
    }

    /// Brings what is here to the place of its own, and adds to it there.
    #[cold]
    fn carry(&mut self, parts: &Parts) {
        let carried = &mut self.carried.get_or_insert_default().parts;
        add(carried, &std::mem::take(&mut self.low));
        self.low_total = 0;
        add(carried, parts);
    }

    /// Adds sums.
    pub fn add_sums(&mut self, sums: &PartSums) {
        add_sums(&mut self.carried.get_or_insert_default().parts, sums);
    }

    /// Carries over so many messages, and one more. Returns how many are left: none.
    #[cold]
    pub fn carry_messages(&mut self, messages: u32) -> u32 {
        self.carried.get_or_insert_default().messages += u64::from(messages) + 1;
        0
    }

    /// Messages that were carried over.
    #[must_use]
    pub fn carried_messages(&self) -> u64 {
        self.carried.as_ref().map_or(0, |carried| carried.messages)
    }

    /// The sums.
    #[must_use]
    pub fn get(&self) -> PartSums {
        let mut sums = self.carried.as_ref().map_or_else(PartSums::default, |carried| carried.parts);
        add(&mut sums, &self.low);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_beyond_32_bits_are_carried_over() {
        let mut sums = ByteSums::default();
        sums.add(&[1; 9]);

        assert_eq!((0, 1 << 32, [1; 9]), (sums.carry_messages(u32::MAX), sums.carried_messages(), sums.get()));
    }

    proptest! {
        #[test]
        fn small_sums_are_the_sums(messages in proptest::collection::vec(any::<[u32; 9]>(), 0..20), before: [u32; 9]) {
            let (mut small, mut large) = (ByteSums::default(), PartSums::default());
            let before = before.map(|part| u64::from(part) << 20);
            small.add_sums(&before);
            add_sums(&mut large, &before);
            for parts in &messages {
                small.add(parts);
                add(&mut large, parts);
            }
            prop_assert_eq!(large, small.get());
        }
    }
}
