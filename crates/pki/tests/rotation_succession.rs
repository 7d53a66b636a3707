//! Whatever the clock does and wherever the process ends, the parts of an installation trust each other.
//!
//! The model is that of TLS between the parts of a Harbor: an authority in one Secret, and for each part a Secret with its certificate and
//! the bundle that it trusts. The process writes the authority and then the certificates one after the other, and ends between any
//! two writes. Parts read their Secret when they like (their pods are replaced), at the latest after half of an overlap.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod story;

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use story::{Clock, Event, Pairs, event};
use windlass_pki::rotation::succession::{InUse, Leaf, Succession, overlap};
use windlass_pki::{Algorithm, AuthorityRecipe, Certificate, LeafRecipe, PkiError, PrivateKey};

const PARTS: usize = 3;
const DAY: Duration = Duration::from_hours(24);
const LIFETIME: Duration = Duration::from_hours(24 * 365);

/// The Secret that a pod of a part has read.
#[derive(Clone, Debug, PartialEq)]
struct Pod {
    leaf: Certificate,
    bundle: Vec<Certificate>,
}

#[derive(Clone, Debug)]
struct World {
    clock: Clock,
    authority: Option<Succession>,
    /// The Secret of each part, and the moment at which its pods have read it.
    leaves: [Option<(Leaf, u64)>; PARTS],
    pods: [Option<Pod>; PARTS],
    pairs: Pairs,
}

impl World {
    fn new() -> Self {
        Self {
            clock: Clock::new(),
            authority: None,
            leaves: Default::default(),
            pods: Default::default(),
            pairs: Pairs::default(),
        }
    }

    fn trusting(&self) -> Vec<bool> {
        let pods = || self.pods.iter();
        let pairs = pods().flat_map(|verifier| pods().map(move |server| (verifier, server)));
        let trusted = |(verifier, server): (&Option<Pod>, &Option<Pod>)| {
            let both = verifier.as_ref().zip(server.as_ref());
            both.is_some_and(|(verifier, server)| self.clock.trusts(&verifier.bundle, &server.leaf))
        };
        pairs.map(trusted).collect()
    }

    fn written(&self, part: usize) -> Option<Pod> {
        let (leaf, _) = self.leaves[part].as_ref()?;
        let certificate = Certificate::from_pem(leaf.pair.certificate()).unwrap();
        Some(Pod { leaf: certificate, bundle: leaf.bundle.certificates() })
    }

    /// The pods of one part read; nobody may lose trust by that.
    fn read(&mut self, part: usize) -> Result<(), TestCaseError> {
        let before = self.trusting();
        self.pods[part] = self.written(part);
        let all = (0..PARTS).all(|part| self.written(part) == self.pods[part]);
        let after = self.trusting();
        self.pairs.read(&before, &after, all, &self.clock)
    }

    fn all_read(&mut self) -> Result<(), TestCaseError> {
        (0..PARTS).try_for_each(|part| self.read(part))
    }

    fn advance(&mut self, seconds: u64) -> Result<(), TestCaseError> {
        self.clock.advance(seconds);
        for part in 0..PARTS {
            if self.leaves[part].as_ref().is_some_and(|(_, known_at)| *known_at <= self.clock.passed()) {
                self.read(part)?;
            }
        }
        Ok(())
    }

    /// Does what the process does, up to this number of writes. Returns when to look again if it came to the end.
    fn run(&mut self, mut writes: usize) -> Option<Timestamp> {
        let (now, trusting) = (self.clock.now(), self.trusting());
        let known_at = self.clock.passed() + overlap(LIFETIME).as_secs() / 2;
        let in_use: Vec<_> = self.leaves.iter().flatten().map(|(leaf, _)| InUse::of(leaf)).collect();
        let recipe = AuthorityRecipe::new("shop", LIFETIME);
        let (authority, mut due) = Succession::tend(self.authority.as_ref(), &in_use, &recipe, now).unwrap();
        if self.authority.as_ref() != Some(&authority) {
            writes = writes.checked_sub(1)?;
            self.authority = Some(authority.clone());
        }
        let recipe = LeafRecipe::new().names(["part.shop.svc"]).server().client();
        let key = || PrivateKey::generate(Algorithm::EcdsaP256);
        for stored in &mut self.leaves {
            let present = stored.as_ref().map(|(leaf, _)| leaf);
            let tended = authority.tend_leaf::<PkiError>(present, &recipe, 90 * DAY, key, now);
            let (leaf, leaf_due) = tended.unwrap();
            due = due.min(leaf_due);
            if present != Some(&leaf) {
                writes = writes.checked_sub(1)?;
                *stored = Some((leaf, known_at));
                self.pairs.written(&trusting);
            }
        }
        Some(due)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parts_trust_each_other_whatever_the_clock_does_and_wherever_the_process_ends(
        events in prop::collection::vec(event(PARTS), 1..60),
    ) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Advance(seconds) => world.advance(seconds)?,
                // An overlap is measured by the clock: a jump may end it early, so everybody has read before one.
                Event::Jump(seconds) => {
                    world.all_read()?;
                    world.clock.jump(seconds);
                }
                Event::Read(part) => world.read(part)?,
                Event::Run(writes) => {
                    if let Some(due) = world.run(writes) {
                        prop_assert!(due > world.clock.now(), "it waits for the past, at {:?}", world.clock);
                        let mut later = world.clone();
                        later.all_read()?;
                        prop_assert!(later.trusting().iter().all(|trusts| *trusts), "nobody would heal it, at {:?}", later.clock);
                    }
                }
            }
        }
    }
}
