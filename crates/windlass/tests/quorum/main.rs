//! A model of a replicated store and its director: random edits, crashes, lost observations, late watches and
//! restarts of the operator. After each step the rules of the store hold, and after a calm the spec is
//! reached.
//!
//! Every rule of the director has a broken twin, and the model must catch each of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod director;
mod model;

use director::Sabotage;
use model::{Model, Random};

/// The number of random stories that a sound director has to survive.
const STORIES: u64 = 2_000;
/// The number of random stories within which a broken twin has to be caught.
const PATIENCE: u64 = 6_000;
const STEPS: usize = 120;

/// Plays one random story. Returns the first rule that was broken.
fn play(seed: u64, sabotage: Option<Sabotage>) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut model = Model::new(sabotage, 1 + random.below(5));
    model.calm()?;
    for _ in 0..STEPS {
        model.step(&mut random)?;
    }
    model.calm()
}

#[test]
fn a_sound_director_never_loses_data_or_the_majority_and_reaches_the_spec() {
    for seed in 0..STORIES {
        if let Err(broken) = play(seed, None) {
            panic!("story {seed}: {broken}");
        }
    }
}

#[test]
fn every_broken_rule_is_caught() {
    for sabotage in Sabotage::ALL {
        let caught = (0..PATIENCE).find_map(|seed| play(seed, Some(sabotage)).err());
        assert!(caught.is_some(), "{sabotage:?} was not caught in {PATIENCE} stories");
    }
}

#[test]
fn the_same_story_ends_in_the_same_way() {
    for seed in 0..50 {
        assert_eq!(play(seed, Some(Sabotage::TwoAtOnce)), play(seed, Some(Sabotage::TwoAtOnce)));
    }
}
