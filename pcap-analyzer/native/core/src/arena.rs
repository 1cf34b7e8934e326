//! A list that grows in blocks: nothing in it moves, and no more memory is taken than one block beyond what is used.

/// So few values, with what hangs on them, stay in the processor's cache: nothing is gained by reading ahead.
pub const IN_CACHE: usize = 512;

/// Values by number, from 0.
#[derive(Debug)]
pub struct Arena<T> {
    blocks: Vec<Vec<T>>,
}

/// Values in a block, as a power of two.
const BLOCK_BITS: u32 = 7;
const BLOCK: usize = 1 << BLOCK_BITS;

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { blocks: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// Adds the value that `make` makes of its number; returns the number.
    pub fn add(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        let number = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let value = make(number);
        match self.blocks.last_mut() {
            Some(block) if block.len() < BLOCK => block.push(value),
            _ => {
                let mut block = Vec::with_capacity(BLOCK);
                block.push(value);
                self.blocks.push(block);
            }
        }
        number
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// A value by its number.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.blocks.get((number >> BLOCK_BITS) as usize)?.get(number as usize % BLOCK)
    }

    /// A value by its number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.blocks.get_mut((number >> BLOCK_BITS) as usize)?.get_mut(number as usize % BLOCK)
    }

    /// All values in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// All values in the order of their numbers, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.blocks.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_what_was_added_across_blocks() {
        let mut arena = Arena::default();
        let numbers: Vec<u32> = (0..1000).map(|_| arena.add(|number| u64::from(number) * 3)).collect();

        assert_eq!((0..1000).collect::<Vec<u32>>(), numbers);
        assert_eq!((1000, Some(&2997), None), (arena.len(), arena.get(999), arena.get(1000)));
        assert!(arena.iter().copied().eq((0..1000).map(|number| number * 3)));
    }
}
