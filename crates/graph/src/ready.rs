//! The set of nodes that may start, smallest first.
//!
//! A bitmap under bitmaps: a word on one level says which words of the level below
//! hold anything. Insert and take touch one word a level, of which a graph of
//! 100,000 nodes has three and the largest possible one six, so the start order costs
//! no logarithm of note and an eighth of a byte per node; a heap would pay both.

/// A set of small numbers that gives up its smallest.
#[derive(Debug)]
pub(crate) struct ReadySet {
    /// Levels of bit sets, from the numbers themselves up to a single word.
    levels: Vec<Vec<u64>>,
}

impl ReadySet {
    /// An empty set for the numbers below `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = capacity.div_ceil(64);
        while words > 0 {
            levels.push(vec![0; words]);
            words = if words == 1 { 0 } else { words.div_ceil(64) };
        }
        ReadySet { levels }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.levels.last().is_none_or(|top| top[0] == 0)
    }

    pub(crate) fn insert(&mut self, number: u32) {
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at as usize / 64];
            let known = *word != 0;
            *word |= 1 << (at % 64);
            if known {
                return;
            }
            at /= 64;
        }
    }

    pub(crate) fn take_first(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let number =
            self.levels.iter().rev().fold(0, |at, level| at * 64 + level[at as usize].trailing_zeros());
        let mut at = number;
        for level in &mut self.levels {
            let word = &mut level[at as usize / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_set_without_room_is_empty() {
        let mut set = ReadySet::new(0);
        assert!(set.is_empty());
        assert_eq!(set.take_first(), None);
    }

    proptest! {
        #[test]
        fn a_ready_set_returns_what_an_ordered_set_returns(
            capacity in prop_oneof![1u32..130, 4000u32..4200, 262_100u32..262_200],
            steps in prop::collection::vec(prop::option::of(any::<u32>()), 0..300),
        ) {
            let mut set = ReadySet::new(capacity as usize);
            let mut model = BTreeSet::new();
            for step in steps {
                if let Some(number) = step {
                    set.insert(number % capacity);
                    model.insert(number % capacity);
                } else {
                    prop_assert_eq!(set.take_first(), model.pop_first());
                }
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }
}
