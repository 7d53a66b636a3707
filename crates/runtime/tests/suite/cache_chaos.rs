//! Tests of the cache during server restarts and network faults, on a control plane of its own.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::live;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use live::{Configs, Live, quick, synced, until, value_of};
use windlass_runtime::cache::{Shape, WatchTiming};
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::{Manager, Stop};
use windlass_runtime::meta::{ResourceVersion, Uid};
use windlass_testenv::proxy::{Action, Answer, Fault, Match, WatchFault};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

#[tokio::test]
async fn an_api_server_restart_loses_nothing() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let live = Live::new(&env, "restart").await?;
    for name in ["a", "b"] {
        live.put(name, "1").await?;
    }
    let (_cache, configs) = synced(&live, quick()).await;
    // The watch reconnects only after everything has happened.
    let held = live.proxy.add(Fault::on(live.watches()).first().then(Action::Hold));
    live.proxy.cut_watches(&live.watches());
    held.wait_for_hits(1).await?;
    live.remove("a").await?;
    live.put("b", "2").await?;
    env.restart_api_server().await?;
    live.put("c", "1").await?;
    held.release();
    until(&configs, "news from the new server", |reader| value_of(reader, &live.key("c")).is_some()).await?;
    live.equals_server(&configs).await?;
    assert!(configs.get(&live.key("a")).is_none());
    Ok(())
}

/// A pseudo-random generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's linear congruential generator: enough to shuffle faults.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The objects according to the changes of a subscriber. Panics when a change contradicts it.
type Belief = Arc<Mutex<BTreeMap<String, (Uid, ResourceVersion)>>>;

/// Changes, creates and deletes a thousand objects directly, without the proxy.
async fn change(live: &Live, rounds: usize) -> Result<()> {
    let mut dice = Dice(7);
    for round in 0..rounds {
        let name = format!("object-{:03}", dice.roll(1_000));
        if dice.roll(4) == 0 {
            // The object may be missing, and the server may be down.
            let _ = live.remove(&name).await;
        } else {
            let _ = live.put(&name, &round.to_string()).await;
        }
    }
    Ok(())
}

/// Injects faults again and again.
async fn torment(live: &Live, configs: &Configs) -> Result<()> {
    let mut dice = Dice(11);
    let lists_and_watches = || {
        Match::verbs([
            windlass_testenv::proxy::RequestVerb::List,
            windlass_testenv::proxy::RequestVerb::Watch,
        ])
    };
    for round in 0_u64.. {
        let fault = match dice.roll(7) {
            0 => Fault::on(live.watches()).first().then(WatchFault::Cut.after_events(dice.roll(10))),
            1 => Fault::on(live.watches()).first().then(WatchFault::Tear.after_events(dice.roll(10))),
            2 => Fault::on(live.watches()).first().then(WatchFault::End.after_events(dice.roll(10))),
            3 => Fault::on(live.watches())
                .first()
                .then(WatchFault::Error(Answer::expired()).after_events(dice.roll(10))),
            4 => Fault::on(live.watches()).first().then(WatchFault::HalfOpen.after_events(dice.roll(10))),
            5 => Fault::on(lists_and_watches()).times(2).then(Answer::internal_error()),
            _ => Fault::on(lists_and_watches()).times(3).then(Answer::unavailable()),
        };
        // The fault hits the next watch; there must be an open one to cut.
        let _ = live.proxy.wait_for_open_watches(&live.watches(), 1).await;
        let handle = live.proxy.add(fault);
        live.proxy.cut_watches(&live.watches());
        let met = handle.wait_for_hits(1);
        // The cache recovers from each fault, unless the server is down.
        if met.await.is_ok() && live.put("marker", &round.to_string()).await.is_ok() {
            let back = until(configs, "the cache to come back", |reader| {
                value_of(reader, &live.key("marker")).is_some_and(|value| value == round.to_string())
            });
            back.await?;
        }
        handle.remove();
    }
    Ok(())
}

/// The result of the last reconcile of each name: a version, or nothing.
type Sightings = Arc<Mutex<BTreeMap<String, Option<ResourceVersion>>>>;

/// Returns a controller that records what it sees.
fn observer(configs: &Configs, sightings: &Sightings) -> Result<Controller> {
    let (reader, sightings) = (configs.clone(), Arc::clone(sightings));
    Ok(Controller::for_(configs).name("observer").workers(4).build(move |key: ObjectKey| {
        let seen = reader.get(&key).map(|config| config.meta().resource_version.clone());
        sightings.lock().unwrap().insert(key.name().to_owned(), seen);
        async { Ok(Requeue::OnChange) }
    })?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_cuts_errors_and_restarts_the_cache_equals_the_server_and_all_changes_were_reconciled()
-> Result<()> {
    const CHANGES: usize = 6_000;
    const RESTARTS: usize = 2;
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let live = Live::new(&env, "chaos").await?;
    let timing =
        WatchTiming { idle: Duration::from_millis(700), list_idle: Duration::from_secs(2), ..quick() };
    let (cache, configs) = synced(&live, timing).await;
    let belief = Belief::default();
    let known = Arc::clone(&belief);
    let _subscription = configs.subscribe(move |change| {
        let identity = |meta: &windlass_runtime::meta::Meta| (meta.uid, meta.resource_version.clone());
        let name = change.object().unwrap().meta().name().to_owned();
        let mut known = known.lock().unwrap();
        let old = change.old.as_ref().map(|old| identity(old.meta()));
        let known = match &change.new {
            Some(new) => known.insert(name, identity(new.meta())),
            None => known.remove(&name),
        };
        assert_eq!(known, old, "a change tells the true old object");
    });

    let sightings = Sightings::default();
    let mut manager = Manager::new();
    manager.controller(observer(&configs, &sightings)?)?;
    let (stopper, stop) = Stop::pair();
    let managing = tokio::spawn(manager.run_until(stop));

    let work = async {
        for _ in 0..RESTARTS {
            change(&live, CHANGES / (RESTARTS + 1)).await?;
            env.restart_api_server().await?;
        }
        change(&live, CHANGES / (RESTARTS + 1)).await
    };
    tokio::select! {
        done = work => done?,
        lost = torment(&live, &configs) => lost?,
    }
    live.proxy.clear();
    live.proxy.cut_watches(&Match::any());
    let objects = live.equals_server(&configs).await?;
    let believed: Vec<(String, (Uid, ResourceVersion))> =
        belief.lock().unwrap().iter().map(|(name, identity)| (name.clone(), identity.clone())).collect();
    let held: Vec<(String, (Uid, ResourceVersion))> = configs
        .list()
        .iter()
        .map(|config| {
            let meta = config.meta();
            (meta.name().to_owned(), (meta.uid, meta.resource_version.clone()))
        })
        .collect();
    assert_eq!(believed, held, "subscribers received every change, once, in order");
    let last: BTreeMap<&str, &ResourceVersion> =
        held.iter().map(|(name, (_, version))| (&**name, version)).collect();
    eventually("the last version of every object to be reconciled", || async {
        let sightings = sightings.lock().unwrap();
        let behind: Vec<&String> = sightings
            .iter()
            .filter(|(name, seen)| seen.as_ref() != last.get(name.as_str()).copied())
            .map(|(name, _)| name)
            .collect();
        let never = last.keys().filter(|name| !sightings.contains_key(**name)).count();
        if behind.is_empty() && never == 0 {
            Ok(())
        } else {
            Err(format!("{never} never seen, behind: {behind:?}"))
        }
    })
    .await?;
    stopper.request();
    managing.await??;

    let report = &cache.watches()[0];
    println!("{objects} objects, {} restarts of the watch, {} lists", report.restarts, report.lists);
    assert!(report.restarts > 20 && report.lists > 2, "the faults happened: {report:?}");
    Ok(())
}
