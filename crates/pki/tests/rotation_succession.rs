//! The components of an installation trust each other while a [`Succession`] of authorities is rotated,
//! whatever the clock does and wherever the process ends.
//!
//! The model is that of TLS between the components of a Harbor: an authority in one Secret, and for each
//! component a Secret with its certificate and the bundle that it trusts. The process writes the authority
//! and then the certificates one after the other, and ends between any two writes. Components read their
//! Secret when they like (their pods are replaced), at the latest after half of an overlap.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod model;

use std::time::Duration;

use jiff::Timestamp;
use model::{Clock, Model, Pairs, World, event};
use proptest::prelude::*;
use windlass_pki::rotation::succession::{InUse, Leaf, Succession, overlap};
use windlass_pki::{Algorithm, AuthorityRecipe, Certificate, LeafRecipe, PkiError, PrivateKey};

const COMPONENTS: usize = 3;
const DAY: Duration = Duration::from_hours(24);
const LIFETIME: Duration = Duration::from_hours(24 * 365);

/// The Secret that a pod of a component has read.
#[derive(Clone, Debug, PartialEq)]
struct Pod {
    leaf: Certificate,
    bundle: Vec<Certificate>,
}

#[derive(Clone, Debug, Default)]
struct Components {
    authority: Option<Succession>,
    /// The Secret of each component, and the time at which its pods have read it.
    leaves: [Option<(Leaf, u64)>; COMPONENTS],
    pods: [Option<Pod>; COMPONENTS],
}

impl Components {
    fn written(&self, component: usize) -> Option<Pod> {
        let (leaf, _) = self.leaves[component].as_ref()?;
        let certificate = Certificate::from_pem(leaf.pair.certificate()).unwrap();
        Some(Pod { leaf: certificate, bundle: leaf.bundle.certificates() })
    }
}

impl Model for Components {
    const READERS: usize = COMPONENTS;

    fn trusting(&self, clock: &Clock) -> Vec<bool> {
        let pods = || self.pods.iter();
        let pairs = pods().flat_map(|verifier| pods().map(move |server| (verifier, server)));
        let trusted = |(verifier, server): (&Option<Pod>, &Option<Pod>)| {
            let both = verifier.as_ref().zip(server.as_ref());
            both.is_some_and(|(verifier, server)| clock.trusts(&verifier.bundle, &server.leaf))
        };
        pairs.map(trusted).collect()
    }

    fn read_by(&self, component: usize) -> Option<u64> {
        self.leaves[component].as_ref().map(|(_, read_by)| *read_by)
    }

    fn read(&mut self, component: usize) {
        self.pods[component] = self.written(component);
    }

    fn have_all_read(&self) -> bool {
        (0..COMPONENTS).all(|component| self.written(component) == self.pods[component])
    }

    fn run(&mut self, mut writes: usize, clock: &Clock, pairs: &mut Pairs) -> Option<Timestamp> {
        let (now, trusting) = (clock.now(), self.trusting(clock));
        let read_by = clock.passed() + overlap(LIFETIME).as_secs() / 2;
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
                *stored = Some((leaf, read_by));
                pairs.written(&trusting);
            }
        }
        Some(due)
    }
}

proptest! {
    #![proptest_config(model::config())]

    #[test]
    fn components_trust_each_other_whatever_the_clock_does_and_wherever_the_process_ends(
        events in prop::collection::vec(event(COMPONENTS), 1..60),
    ) {
        World::<Components>::play(events)?;
    }
}
