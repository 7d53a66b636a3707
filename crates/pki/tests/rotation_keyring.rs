//! API servers trust a webhook whose certificates are rotated by a [`Keyring`], whatever the clock does and
//! wherever the process ends.
//!
//! The model is that of webhooks: a keyring in one Secret, replicas that serve the leaf they last read from
//! it, configurations that get the bundle one after the other, and API servers that trust the bundle they
//! last read from a configuration. The process ends between any two writes, and replicas and API servers read
//! when they like, at the latest after the time to settle.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod model;

use jiff::Timestamp;
use model::{Clock, Model, Pairs, World, event};
use proptest::prelude::*;
use windlass_pki::rotation::{Keyring, Policy};
use windlass_pki::{Bundle, Certificate, LeafRecipe};

const CONFIGURATIONS: usize = 2;
const REPLICAS: usize = 2;

/// A written value, and the time at which all readers have read it.
#[derive(Clone, Debug, Default)]
struct Written<T> {
    value: T,
    read_by: u64,
}

#[derive(Clone, Debug, Default)]
struct Webhooks {
    secret: Written<Keyring>,
    configurations: [Written<Bundle>; CONFIGURATIONS],
    /// The leaf that each replica last read.
    replicas: [Option<Certificate>; REPLICAS],
    /// The bundle that an API server last read from each configuration.
    servers: [Vec<Certificate>; CONFIGURATIONS],
}

impl Webhooks {
    fn leaf(&self) -> Option<Certificate> {
        self.secret.value.leaf().map(|leaf| Certificate::from_pem(leaf.certificate()).unwrap())
    }
}

impl Model for Webhooks {
    const READERS: usize = REPLICAS + CONFIGURATIONS;

    fn trusting(&self, clock: &Clock) -> Vec<bool> {
        let pairs =
            self.servers.iter().flat_map(|bundle| self.replicas.iter().map(move |leaf| (bundle, leaf)));
        pairs.map(|(bundle, leaf)| leaf.as_ref().is_some_and(|leaf| clock.trusts(bundle, leaf))).collect()
    }

    fn read_by(&self, reader: usize) -> Option<u64> {
        Some(match reader.checked_sub(REPLICAS) {
            None => self.secret.read_by,
            Some(index) => self.configurations[index].read_by,
        })
    }

    fn read(&mut self, reader: usize) {
        match reader.checked_sub(REPLICAS) {
            None => self.replicas[reader] = self.leaf(),
            Some(index) => self.servers[index] = self.configurations[index].value.certificates(),
        }
    }

    fn have_all_read(&self) -> bool {
        let (leaf, all) = (self.leaf(), self.configurations.iter().zip(&self.servers));
        self.replicas.iter().all(|replica| *replica == leaf)
            && all.into_iter().all(|(written, read)| written.value.certificates() == *read)
    }

    fn run(&mut self, mut writes: usize, clock: &Clock, pairs: &mut Pairs) -> Option<Timestamp> {
        let policy = Policy::default();
        let trusting = self.trusting(clock);
        let read_by = clock.passed() + policy.settle.as_secs();
        let recipe = LeafRecipe::new().names(["hooks.shop.svc"]).server();
        let mut keyring = self.secret.value.clone();
        let tended = keyring.tend("hooks", &recipe, &policy, clock.now()).unwrap();
        if tended.changed {
            writes = writes.checked_sub(1)?;
            self.secret = Written { value: keyring.clone(), read_by };
            pairs.written(&trusting);
        }
        for configuration in &mut self.configurations {
            if configuration.value != keyring.bundle() {
                writes = writes.checked_sub(1)?;
                *configuration = Written { value: keyring.bundle(), read_by };
                pairs.written(&trusting);
            }
        }
        if keyring.announce(clock.now()) {
            writes.checked_sub(1)?;
            self.secret.value = keyring;
        }
        Some(tended.until)
    }
}

proptest! {
    #![proptest_config(model::config())]

    #[test]
    fn api_servers_trust_the_webhook_whatever_the_clock_does_and_wherever_the_process_ends(
        events in prop::collection::vec(event(Webhooks::READERS), 1..60),
    ) {
        World::<Webhooks>::play(events)?;
    }
}
