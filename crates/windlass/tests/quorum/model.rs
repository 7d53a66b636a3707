//! The model: a store with data, its pods and claims, the caches of the operator, and the steps that happen.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use windlass::{Action, Depth, Known, Observed, Snapshot, decide};

use super::director::{
    Call, Facts, Members, PodFact, Quorum, QuorumDirector, QuorumSpec, Sabotage, Seen, replicas,
};

/// A small generator of random numbers, so that a story can be told again by its seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below the limit.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 16) % u64::from(limit)).unwrap()
    }
}

/// The number of pieces of data.
const SHARDS: u8 = 4;
/// The number of copies of each piece, as far as there are members.
const COPIES: usize = 3;

struct Pod {
    fact: PodFact,
    claim: u64,
}

/// A member of the store.
#[derive(Clone, Copy)]
struct Member {
    /// True if it has received everything that it missed while it was down.
    synced: bool,
    /// True if it has been synced once: from then on it counts for the majority.
    votes: bool,
}

pub(crate) struct Model {
    owner: Quorum,
    director: QuorumDirector,
    /// The truth of the cluster.
    replicas: Option<u32>,
    template: u32,
    pods: BTreeMap<u32, Pod>,
    claims: BTreeMap<u32, u64>,
    uids: u64,
    /// The truth of the store.
    members: BTreeMap<u32, Member>,
    leaving: Option<u32>,
    /// The pieces of data on each claim, by its uid.
    data: BTreeMap<u64, BTreeSet<u8>>,
    written: bool,
    /// The operator: its cache, its last observation, and whether an effect has ended since that began.
    cache: Facts,
    observed: Option<Observed<Seen>>,
    outdated: bool,
}

impl Model {
    pub(crate) fn new(sabotage: Option<Sabotage>, members: u32) -> Self {
        let mut owner = Quorum::new("store", QuorumSpec { members, template: 1 });
        if let Some(sabotage) = sabotage {
            owner.metadata.annotations = Some([("sabotage".to_owned(), format!("{sabotage:?}"))].into());
        }
        Self {
            owner,
            director: QuorumDirector { sabotage },
            replicas: None,
            template: 0,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            uids: 0,
            members: BTreeMap::new(),
            leaving: None,
            data: BTreeMap::new(),
            written: false,
            cache: Facts::default(),
            observed: None,
            outdated: false,
        }
    }

    fn is(&self, sabotage: Sabotage) -> bool {
        self.director.sabotage == Some(sabotage)
    }

    /// Makes one random step, and checks the rules of the store.
    pub(crate) fn step(&mut self, random: &mut Random) -> Result<(), String> {
        match random.below(20) {
            0 => self.owner.spec.members = 1 + random.below(5),
            1 => self.owner.spec.template += 1,
            2 => self.crash(random.below(5)),
            // The operator is killed: it forgets what it has observed.
            3 => (self.observed, self.outdated) = (None, false),
            4 => self.observe(false),
            5..=7 => self.observe(true),
            8..=10 => self.control_pods(),
            11..=12 => self.replicate(),
            13..=14 => self.sync_cache(),
            _ => self.pass(random.below(2) == 0)?,
        }
        self.check()
    }

    /// Lets everything settle: the spec has to be reached within a bounded number of passes.
    pub(crate) fn calm(&mut self) -> Result<(), String> {
        for _ in 0..200 {
            self.control_pods();
            self.replicate();
            self.sync_cache();
            self.observe(true);
            self.pass(false)?;
            self.check()?;
            if self.why_not_converged().is_none() {
                return Ok(());
            }
        }
        self.why_not_converged().map_or(Ok(()), Err)
    }

    /// Returns what differs from the spec.
    fn why_not_converged(&self) -> Option<String> {
        let QuorumSpec { members, template } = self.owner.spec;
        let has: Vec<u32> = self.members.keys().copied().collect();
        let old = self.pods.values().filter(|pod| pod.fact.template != template || !pod.fact.ready).count();
        let unused = self.claims.keys().filter(|ordinal| **ordinal >= members).count();
        let (replicas, unhealthy, leaving) = (self.replicas, self.unhealthy(), self.leaving);
        let reached = replicas == Some(members) && has == (0..members).collect::<Vec<_>>();
        let calm = old + unused + unhealthy == 0 && leaving.is_none();
        (!(reached && calm)).then(|| {
            format!(
                "not converged: {replicas:?} replicas and members {has:?} of {members}, leaving {leaving:?}, {unhealthy} \
                 unhealthy, {old} old pods, {unused} unused claims"
            )
        })
    }

    fn uid(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }

    fn is_healthy(&self, ordinal: u32) -> bool {
        let up = self.pods.get(&ordinal).is_some_and(|pod| pod.fact.ready);
        up && self.members.get(&ordinal).is_some_and(|member| member.synced)
    }

    fn unhealthy(&self) -> usize {
        self.members.keys().filter(|ordinal| !self.is_healthy(**ordinal)).count()
    }

    fn voters(&self) -> usize {
        self.members.values().filter(|member| member.votes).count()
    }

    /// Returns the number of voters that are down.
    fn down(&self) -> usize {
        let votes = self.members.iter().filter(|(_, member)| member.votes);
        votes.filter(|(ordinal, _)| !self.is_healthy(**ordinal)).count()
    }

    /// Returns the number of voters that the store can lose without losing its majority.
    fn spare(&self) -> usize {
        self.voters().saturating_sub(1) / 2
    }

    /// A member crashes, if the store can bear that: more than it can bear is not the operator's fault.
    fn crash(&mut self, ordinal: u32) {
        if !self.is_healthy(ordinal) || self.down() >= self.spare() {
            return;
        }
        self.stop(ordinal);
    }

    fn stop(&mut self, ordinal: u32) {
        if let Some(pod) = self.pods.get_mut(&ordinal) {
            pod.fact.ready = false;
        }
        if let Some(member) = self.members.get_mut(&ordinal) {
            member.synced = false;
        }
    }

    fn observe(&mut self, answers: bool) {
        let healthy = self.members.keys().map(|ordinal| (*ordinal, self.is_healthy(*ordinal))).collect();
        let members = if answers {
            Known::Known(Members { healthy, leaving: self.leaving })
        } else {
            Known::Unknown("the store did not answer".to_owned())
        };
        let (facts, depth, began) = (Seen { members }, Depth::Full, Timestamp::UNIX_EPOCH);
        self.observed = Some(Observed { facts, depth, began });
        self.outdated = false;
    }

    /// The StatefulSet controller and the kubelet: pods and claims follow the set.
    fn control_pods(&mut self) {
        let Some(replicas) = self.replicas else { return };
        self.pods.retain(|ordinal, _| *ordinal < replicas);
        for pod in self.pods.values_mut() {
            pod.fact.ready = true;
        }
        for ordinal in 0..replicas {
            if self.pods.contains_key(&ordinal) {
                continue;
            }
            let claim = match self.claims.get(&ordinal) {
                Some(claim) => *claim,
                None => self.uid(),
            };
            self.claims.insert(ordinal, claim);
            let fact = PodFact { uid: self.uid(), template: self.template, ready: true };
            self.pods.insert(ordinal, Pod { fact, claim });
        }
        let old = self.pods.iter().rev().find(|(_, pod)| pod.fact.template != self.template);
        if let Some(ordinal) = old.map(|(ordinal, _)| *ordinal).filter(|_| self.is(Sabotage::OpenGate)) {
            self.stop(ordinal);
            self.pods.remove(&ordinal);
        }
    }

    /// The store works for a while: members catch up one at a time, copies are made, a leaving member moves
    /// its data.
    fn replicate(&mut self) {
        let up: Vec<u32> = self
            .members
            .keys()
            .copied()
            .filter(|at| self.pods.get(at).is_some_and(|pod| pod.fact.ready))
            .collect();
        if let Some(behind) = up.iter().find(|ordinal| !self.is_healthy(**ordinal)) {
            if let Some(member) = self.members.get_mut(behind) {
                (member.synced, member.votes) = (true, true);
            }
            return;
        }
        if !self.written && !up.is_empty() {
            // Somebody uses the store for the first time.
            self.written = true;
            let first = self.pods[&up[0]].claim;
            self.data.entry(first).or_default().extend(0..SHARDS);
        }
        let staying: Vec<u32> = up.iter().copied().filter(|ordinal| Some(*ordinal) != self.leaving).collect();
        for shard in 0..SHARDS {
            let holds = |model: &Self, ordinal: u32| {
                let claim = model.pods.get(&ordinal).map(|pod| pod.claim);
                claim.and_then(|claim| model.data.get(&claim)).is_some_and(|data| data.contains(&shard))
            };
            if !up.iter().any(|ordinal| holds(self, *ordinal)) {
                continue;
            }
            let copies = staying.iter().filter(|ordinal| holds(self, **ordinal)).count();
            let lacking = staying.iter().find(|ordinal| !holds(self, **ordinal));
            if let Some(ordinal) = lacking.filter(|_| copies < COPIES) {
                let claim = self.pods[ordinal].claim;
                self.data.entry(claim).or_default().insert(shard);
                return;
            }
        }
        if self.down() > 0 {
            // The store does not give up a voter while another one is down.
            return;
        }
        if let Some(leaving) = self.leaving.take() {
            // Everything that it had is elsewhere by now.
            self.members.remove(&leaving);
            if let Some(pod) = self.pods.get(&leaving) {
                self.data.remove(&pod.claim);
            }
        }
    }

    /// The watches deliver everything that happened.
    fn sync_cache(&mut self) {
        self.cache.pods = self.pods.iter().map(|(ordinal, pod)| (*ordinal, pod.fact)).collect();
        self.cache.claims = self.claims.clone();
    }

    /// One pass of the operator. If the cluster is quick, its controllers follow before the effects are sent.
    fn pass(&mut self, quick: bool) -> Result<(), String> {
        let Some(observed) = self.observed.clone() else { return Ok(()) };
        let known = if self.outdated && !self.is(Sabotage::OldObservation) {
            Known::Unknown("an effect was sent after the last observation".to_owned())
        } else {
            Known::Known(&observed)
        };
        let (owner, cache) = (self.owner.clone(), self.cache.clone());
        let snapshot = Snapshot::new(&owner, &cache, known, Timestamp::UNIX_EPOCH);
        let decided = decide(&self.director, &snapshot);
        // The operator reads its own writes: the set in the cache is the one that it applied.
        let wanted = replicas(self.cache.replicas, &decided.intent);
        if let Some(lost) = self.members.keys().find(|ordinal| **ordinal >= wanted) {
            return Err(format!("replicas are lowered to {wanted}, and member {lost} has not left"));
        }
        (self.replicas, self.cache.replicas, self.template) =
            (Some(wanted), Some(wanted), owner.spec.template);
        if quick {
            self.control_pods();
        }
        for effect in decided.effects {
            let Action::Software(call) = effect.action() else { continue };
            self.outdated = true;
            if !self.perform(call) {
                break;
            }
        }
        Ok(())
    }

    /// Sends an effect. Returns false if its precondition does not hold.
    fn perform(&mut self, call: &Call) -> bool {
        let unchecked = self.is(Sabotage::NoPrecondition);
        let settled = self.unhealthy() == 0 && self.leaving.is_none();
        match *call {
            Call::Join(ordinal) => {
                let up = self.pods.get(&ordinal).is_some_and(|pod| pod.fact.ready);
                // A store without members is begun by its first one; others wait for a healthy majority.
                let may = self.members.is_empty() || (settled && !self.members.contains_key(&ordinal));
                let holds = up && may;
                if !(unchecked || holds) {
                    return false;
                }
                let first = self.members.is_empty();
                self.members.insert(ordinal, Member { synced: first, votes: first });
            }
            Call::Leave(ordinal) => {
                let holds = settled && self.members.contains_key(&ordinal) && self.members.len() > 1;
                if !(unchecked || holds) {
                    return false;
                }
                self.leaving = Some(ordinal);
            }
            Call::Restart(ordinal, uid) => {
                let same = self.pods.get(&ordinal).is_some_and(|pod| pod.fact.uid == uid);
                let alone = self.members.len() <= 1;
                let lenient = self.is(Sabotage::TwoAtOnce) || self.is(Sabotage::RestartWhileLeaving);
                let holds = same && (settled || alone || lenient);
                if !(unchecked || holds) {
                    return false;
                }
                self.stop(ordinal);
                self.pods.remove(&ordinal);
            }
            Call::DeleteClaim(ordinal, uid) => {
                let same = self.claims.get(&ordinal) == Some(&uid);
                let used = self.pods.contains_key(&ordinal) || self.members.contains_key(&ordinal);
                let blind = unchecked || self.is(Sabotage::ClaimByOrdinal);
                if !blind && (!same || used) {
                    return false;
                }
                if let Some(claim) = self.claims.remove(&ordinal) {
                    self.data.remove(&claim);
                }
            }
        }
        true
    }

    /// Checks the rules of the store.
    fn check(&self) -> Result<(), String> {
        let lost = self.pods.iter().find(|(ordinal, pod)| self.claims.get(ordinal) != Some(&pod.claim));
        if let Some((ordinal, _)) = lost {
            return Err(format!("the claim of pod {ordinal} was deleted while the pod used it"));
        }
        if !self.written {
            return Ok(());
        }
        for shard in 0..SHARDS {
            if !self.data.values().any(|data| data.contains(&shard)) {
                return Err(format!("piece {shard} of the data is lost"));
            }
        }
        // A store of one or two members cannot be upgraded without losing its majority for a moment.
        if self.down() > self.spare().max(1) {
            return Err(format!("{} of {} voters are down", self.down(), self.voters()));
        }
        if let Some(leaving) = self.leaving.filter(|leaving| !self.is_up(*leaving)) {
            let crashed = self.pods.contains_key(&leaving);
            if !crashed {
                return Err(format!("member {leaving} was restarted while it moved its data away"));
            }
        }
        Ok(())
    }

    fn is_up(&self, ordinal: u32) -> bool {
        self.pods.get(&ordinal).is_some_and(|pod| pod.fact.ready)
    }
}
