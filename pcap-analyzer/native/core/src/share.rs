//! Parts of what is numbered from 0 on, such as sessions.

/// The rows that one of several passes is to make: those of every so many'th session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: u32,
    count: u32,
}

impl Share {
    /// Part `index`, from 0, of `count` parts, where there is such a one.
    #[must_use]
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count {
            Some(Self { index, count })
        } else {
            None
        }
    }

    /// Whether a number is of this part.
    #[inline]
    #[must_use]
    pub const fn has(self, number: u32) -> bool {
        number % self.count == self.index
    }
}

/// The part of one of several threads. What is numbered in each of them has a number among all that tells the part in its lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: u32,
    bits: u32,
}

impl Part {
    /// The only one.
    pub const ALL: Self = Self { index: 0, bits: 0 };

    /// All parts, of so many.
    pub fn all(count: u32) -> impl Iterator<Item = Self> {
        (0..count).map(move |index| Self { index, bits: count.next_power_of_two().ilog2() })
    }

    /// Which part it is.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The number, among all, of the part's own `place`, from 0.
    #[inline]
    #[must_use]
    pub const fn number(self, place: u32) -> u32 {
        place << self.bits | self.index
    }

    /// Which of the part's own a number among all is.
    #[inline]
    #[must_use]
    pub const fn place(self, number: u32) -> u32 {
        number >> self.bits
    }

    /// Whether a number among all is of this part.
    #[must_use]
    pub const fn has(self, number: u32) -> bool {
        self.number(self.place(number)) == number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_of_one_share() {
        let shares = [0, 1, 2, 3].map(|index| Share::new(index, 3));

        assert_eq!([Some(false), Some(true), Some(false), None], shares.map(|share| share.map(|share| share.has(7))));
    }

    #[test]
    fn each_number_is_of_one_part_and_found_there() {
        let parts: Vec<Part> = Part::all(3).collect();

        assert_eq!(vec![8, 9, 10], parts.iter().map(|part| part.number(2)).collect::<Vec<_>>());
        assert_eq!(vec![false, true, false], parts.iter().map(|part| part.has(9)).collect::<Vec<_>>());
        assert_eq!((2, 7, 7), (parts[1].place(9), Part::ALL.number(7), Part::ALL.place(7)));
    }
}
