//! Whatever the clock does and wherever the process ends, verifiers that were told whom to trust trust what is served.
//!
//! The model is that of webhooks: a keyring in one Secret, replicas that serve the leaf they last read from it, configurations that get the
//! bundle one after the other, and API servers that trust the bundle they last read from a configuration. The process ends between any
//! two writes, and replicas and API servers read when they like, at the latest after the time to settle.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod story;

use proptest::prelude::*;
use story::{Clock, Event, Pairs, event};
use windlass_pki::rotation::{Keyring, Policy};
use windlass_pki::{Bundle, Certificate, LeafRecipe};

const CONFIGURATIONS: usize = 2;
const REPLICAS: usize = 2;

/// Something that was written, and the moment at which all readers have read it.
#[derive(Clone, Debug, Default)]
struct Written<T> {
    value: T,
    known_at: u64,
}

#[derive(Clone, Debug)]
struct World {
    clock: Clock,
    policy: Policy,
    secret: Written<Keyring>,
    configurations: [Written<Bundle>; CONFIGURATIONS],
    /// The leaf of each replica, and the bundle of an API server for each configuration, as they last read them.
    replicas: [Option<Certificate>; REPLICAS],
    servers: [Vec<Certificate>; CONFIGURATIONS],
    pairs: Pairs,
}

impl World {
    fn new() -> Self {
        Self {
            clock: Clock::new(),
            policy: Policy::default(),
            secret: Written::default(),
            configurations: Default::default(),
            replicas: Default::default(),
            servers: Default::default(),
            pairs: Pairs::default(),
        }
    }

    fn trusting(&self) -> Vec<bool> {
        let pairs =
            self.servers.iter().flat_map(|bundle| self.replicas.iter().map(move |leaf| (bundle, leaf)));
        pairs
            .map(|(bundle, leaf)| leaf.as_ref().is_some_and(|leaf| self.clock.trusts(bundle, leaf)))
            .collect()
    }

    fn leaf(&self) -> Option<Certificate> {
        self.secret.value.leaf().map(|leaf| Certificate::from_pem(leaf.certificate()).unwrap())
    }

    fn have_all_read(&self) -> bool {
        let (leaf, all) = (self.leaf(), self.configurations.iter().zip(&self.servers));
        self.replicas.iter().all(|replica| *replica == leaf)
            && all.into_iter().all(|(written, read)| written.value.certificates() == *read)
    }

    /// One reader reads; nobody may lose trust by that.
    fn read(&mut self, reader: usize) -> Result<(), TestCaseError> {
        let before = self.trusting();
        if reader < REPLICAS {
            self.replicas[reader] = self.leaf();
        } else {
            let index = reader - REPLICAS;
            self.servers[index] = self.configurations[index].value.certificates();
        }
        let (after, all) = (self.trusting(), self.have_all_read());
        self.pairs.read(&before, &after, all, &self.clock)
    }

    fn all_read(&mut self) -> Result<(), TestCaseError> {
        (0..REPLICAS + CONFIGURATIONS).try_for_each(|reader| self.read(reader))
    }

    fn advance(&mut self, seconds: u64) -> Result<(), TestCaseError> {
        self.clock.advance(seconds);
        for reader in 0..REPLICAS {
            if self.secret.known_at <= self.clock.passed() {
                self.read(reader)?;
            }
        }
        for index in 0..CONFIGURATIONS {
            if self.configurations[index].known_at <= self.clock.passed() {
                self.read(REPLICAS + index)?;
            }
        }
        Ok(())
    }

    /// Does what the process does, up to this number of writes. Returns when to look again if it came to the end.
    fn run(&mut self, mut writes: usize) -> Option<jiff::Timestamp> {
        let trusting = self.trusting();
        let known_at = self.clock.passed() + self.policy.settle.as_secs();
        let recipe = LeafRecipe::new().names(["hooks.shop.svc"]).server();
        let mut keyring = self.secret.value.clone();
        let tended = keyring.tend("hooks", &recipe, &self.policy, self.clock.now()).unwrap();
        if tended.changed {
            writes = writes.checked_sub(1)?;
            self.secret = Written { value: keyring.clone(), known_at };
            self.pairs.written(&trusting);
        }
        for configuration in &mut self.configurations {
            if configuration.value != keyring.bundle() {
                writes = writes.checked_sub(1)?;
                *configuration = Written { value: keyring.bundle(), known_at };
                self.pairs.written(&trusting);
            }
        }
        if keyring.announce(self.clock.now()) {
            writes.checked_sub(1)?;
            self.secret.value = keyring;
        }
        Some(tended.until)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn api_servers_trust_the_webhook_whatever_the_clock_does_and_wherever_the_process_ends(
        events in prop::collection::vec(event(REPLICAS + CONFIGURATIONS), 1..60),
    ) {
        let mut world = World::new();
        for event in events {
            match event {
                Event::Advance(seconds) => world.advance(seconds)?,
                // The time to settle is measured by the clock: a jump may end it early, so everybody has read before one.
                Event::Jump(seconds) => {
                    world.all_read()?;
                    world.clock.jump(seconds);
                }
                Event::Read(reader) => world.read(reader)?,
                Event::Run(writes) => {
                    if let Some(until) = world.run(writes) {
                        prop_assert!(until > world.clock.now(), "it waits for the past, at {:?}", world.clock);
                        let mut later = world.clone();
                        later.all_read()?;
                        prop_assert!(later.trusting().iter().all(|trusts| *trusts), "nobody would heal it, at {:?}", later.clock);
                    }
                }
            }
        }
    }
}
