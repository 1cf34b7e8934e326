//! Parts of what is numbered from 0 on, such as sessions: every so many'th, in turns.

/// One of several parts: the numbers whose remainder by `count` is `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: u32,
    count: u32,
}

impl Share {
    /// All of them.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// Part `index`, from 0, of `count` parts, where there is such a one.
    #[must_use]
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count {
            Some(Self { index, count })
        } else {
            None
        }
    }

    /// Which part it is.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Whether a number is of this part.
    #[inline]
    #[must_use]
    pub const fn has(self, number: u32) -> bool {
        number % self.count == self.index
    }

    /// The number, among all, of the part's own `place`, from 0.
    #[inline]
    #[must_use]
    pub const fn number(self, place: u32) -> u32 {
        place * self.count + self.index
    }

    /// Which of the part's own a number among all is.
    #[inline]
    #[must_use]
    pub const fn place(self, number: u32) -> u32 {
        number / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn each_number_is_of_one_part_and_found_there() {
        let parts = [0, 1, 2].map(|index| Share::new(index, 3).unwrap_or(Share::ALL));

        assert_eq!([6, 7, 8], parts.map(|part| part.number(2)));
        assert_eq!([false, true, false], parts.map(|part| part.has(7)));
        assert_eq!((2, None), (parts.map(|part| part.place(7))[1], Share::new(3, 3)));
    }
}
