//! A map of which there are very many, as a rule with one or two entries at a time.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A map of which the first `HERE` entries stand in it; the others, where there are more, in a table of their own. So these few cost neither a table nor a
/// way there.
#[derive(Debug)]
pub struct Few<K, V, const HERE: usize = 1> {
    here: [Option<(K, V)>; HERE],
    more: Option<Box<FxHashMap<K, V>>>,
}

impl<K, V, const HERE: usize> Default for Few<K, V, HERE> {
    fn default() -> Self {
        Self { here: [const { None }; HERE], more: None }
    }
}

impl<K: Eq + Hash, V, const HERE: usize> Few<K, V, HERE> {
    /// Reads a little of those that stand here.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.here.iter().map(|place| u64::from(place.is_some())).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        match self.here.iter().flatten().find(|(known, _)| known == key) {
            Some((_, value)) => Some(value),
            None => self.more.as_ref()?.get(key),
        }
    }

    /// The value of a key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.here.iter_mut().flatten().find(|(known, _)| known == key) {
            Some((_, value)) => Some(value),
            None => self.more.as_mut()?.get_mut(key),
        }
    }

    /// Puts a value in. Returns the one that the key had before.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        if let Some(place) = self.here.iter_mut().find(|place| place.is_none()) {
            *place = Some((key, value));
            return None;
        }
        self.more.get_or_insert_default().insert(key, value)
    }

    /// Takes a value out.
    #[inline]
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let of_key = |place: &&mut Option<(K, V)>| place.as_ref().is_some_and(|(known, _)| known == key);
        if let Some(place) = self.here.iter_mut().find(of_key) {
            return place.take().map(|(_, value)| value);
        }
        let removed = self.more.as_mut()?.remove(key);
        self.more.take_if(|more| more.is_empty());
        removed
    }

    /// Keeps those that are to be kept.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&V) -> bool) {
        for place in &mut self.here {
            place.take_if(|(_, value)| !is_kept(value));
        }
        self.more.take_if(|more| {
            more.retain(|_, value| is_kept(value));
            more.is_empty()
        });
    }

    /// All values, in no order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.here.iter().flatten().map(|(_, value)| value).chain(self.more.iter().flat_map(|more| more.values()))
    }

    /// All values, in no order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.here.iter_mut().flatten().map(|(_, value)| value).chain(self.more.iter_mut().flat_map(|more| more.values_mut()))
    }

    /// Takes all values out, in no order.
    pub fn take_all(&mut self) -> impl Iterator<Item = V> {
        let Self { here, more } = std::mem::take(self);
        here.into_iter().flatten().chain(more.into_iter().flat_map(|more| *more)).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check<const HERE: usize>(steps: &[(u8, u16, u8)]) -> Result<(), TestCaseError> {
        let (mut few, mut map) = (Few::<u8, u16, HERE>::default(), BTreeMap::new());
        for &(key, value, step) in steps {
            match step {
                0 | 1 => prop_assert_eq!(map.insert(key, value), few.insert(key, value)),
                2 => prop_assert_eq!(map.remove(&key), few.remove(&key)),
                _ => {
                    map.retain(|_, value| *value > 999);
                    few.retain(|value| *value > 999);
                }
            }
            prop_assert_eq!((map.is_empty(), map.get(&key)), (few.is_empty(), few.get(&key)));
            prop_assert_eq!(map.get_mut(&key), few.get_mut(&key));
            let mut values: Vec<u16> = few.values().copied().collect();
            let mut changed: Vec<u16> = few.values_mut().map(|value| *value).collect();
            values.sort_unstable();
            changed.sort_unstable();
            let mut expected: Vec<u16> = map.values().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!((&expected, &expected), (&values, &changed));
        }
        let mut taken: Vec<u16> = few.take_all().collect();
        taken.sort_unstable();
        let mut expected: Vec<u16> = map.into_values().collect();
        expected.sort_unstable();
        prop_assert_eq!((expected, true), (taken, few.is_empty()));
        Ok(())
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_does(steps in proptest::collection::vec((0u8..6, any::<u16>(), 0u8..4), 0..60)) {
            check::<1>(&steps)?;
            check::<2>(&steps)?;
        }
    }
}
