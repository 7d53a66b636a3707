//! Tests that the last version of every object is reconciled whatever faults the network has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

use crate::operator;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use operator::{Mirror, Operator, Runs, cache, client, labelled, original, value};
use parking_lot::Mutex;
use serde_json::json;
use windlass_runtime::cache::{Full, Reader, Shape as _};
use windlass_runtime::controller::{Controller, Error, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_testenv::proxy::{Action, Answer, Fault, FaultProxy, Match, RequestVerb, WatchFault};
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

/// A pseudo-random generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const OBJECTS: u64 = 100;
const STEPS: u64 = 600;

/// The result of the last reconcile of each name: a version, or nothing.
type Sightings = Arc<Mutex<HashMap<String, Option<String>>>>;

/// Returns a controller that records what it sees, and fails from time to time.
fn observer(configs: &Reader<Full<ConfigMap>>, sightings: &Sightings) -> Result<Controller> {
    let (configs, sightings) = (configs.clone(), Arc::clone(sightings));
    let attempts = Runs::default();
    let builder = Controller::for_(&configs).name("observer").workers(3);
    Ok(builder.build(move |key: ObjectKey| {
        let object = configs.get(&key);
        let fails = attempts.count(&key) % 5 == 0;
        let sightings = Arc::clone(&sightings);
        async move {
            tokio::task::yield_now().await;
            if fails {
                return Err(Error::transient("now and then"));
            }
            let version = object.map(|object| object.meta().resource_version.to_string());
            sightings.lock().insert(key.name().to_owned(), version);
            Ok(Requeue::OnChange)
        }
    })?)
}

/// Creates, changes or deletes an object. A missing object is not an error.
async fn change(api: &Api<ConfigMap>, name: &str, value: &str, how: u64) {
    match how {
        0 => drop(api.delete(name, &DeleteParams::default()).await),
        1..=4 => drop(api.create(&PostParams::default(), &original(name, value)).await),
        _ => {
            let change = Patch::Merge(json!({"data": {"value": value}}));
            drop(api.patch(name, &PatchParams::default(), &change).await);
        }
    }
}

fn all_watches() -> Match {
    Match::watches().resource("configmaps")
}

/// Injects a fault, now or for the next request.
fn hurt(proxy: &FaultProxy, how: u64) {
    let watch = || Fault::on(all_watches()).first();
    let write = || Fault::on(Match::verb(RequestVerb::Apply).resource("configmaps")).first();
    let fault = match how {
        0 => watch().then(WatchFault::Cut.after_events(1)),
        1 => watch().then(WatchFault::Tear.after_events(2)),
        2 => watch().then(Answer::internal_error()),
        3 => watch().then(WatchFault::Error(Answer::expired())),
        4 => write().then(Action::DropAfter),
        5 => write().then(Answer::unavailable()),
        6 => write().then(Answer::conflict()),
        _ => write().then(Action::DropBefore),
    };
    proxy.add(fault);
    if how < 4 {
        proxy.cut_watches(&all_watches());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_version_of_every_object_is_reconciled_whatever_the_network_does() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("faults").await?;
    let user = namespace.client_for("faults", &Rules::everything()).await?;
    let proxy = env.fault_proxy().await?;
    let client = client(user.config_through(&proxy.url())?)?;
    let cached = cache(&client);
    let sightings = Sightings::default();
    let configs = cached.reader::<Full<ConfigMap>>(&labelled(namespace.name(), "mirror=original")?);
    // One controller records, and one writes through the same proxy.
    let mirror = Mirror::new(&client, &cached, namespace.name())?.controller(&Runs::default())?;
    let running = Operator::start(&cached, [observer(&configs, &sightings)?, mirror])?;

    let api = namespace.api::<ConfigMap>();
    let mut dice = Dice(42);
    for step in 0..STEPS {
        change(&api, &format!("o{}", dice.roll(OBJECTS)), &step.to_string(), dice.roll(10)).await;
        if step % 7 == 0 {
            hurt(&proxy, dice.roll(8));
        }
    }
    let hurt = proxy.seen().iter().filter(|seen| seen.fault.is_some()).count();
    assert!(hurt > 20, "only {hurt} requests were hurt: this was no test");
    proxy.clear();

    // The last changes are made while all watches are cut, so that they can only be found by a list.
    let frozen = proxy.freeze_watches(&all_watches());
    for n in 0..OBJECTS {
        change(&api, &format!("o{n}"), "last", n % 10).await;
    }
    let expired = proxy.add(Fault::on(all_watches()).times(2).then(Answer::expired()));
    proxy.cut_watches(&all_watches());
    drop(frozen);
    expired.wait_for_hits(2).await?;

    eventually("every object's last version was reconciled", || missed(&api, &sightings)).await?;
    eventually("every copy follows its original", || astray(&api)).await?;
    running.stop().await
}

/// Fails with the objects whose last version, or deletion, no reconcile has seen.
async fn missed(api: &Api<ConfigMap>, sightings: &Sightings) -> Result<(), String> {
    let originals = ListParams::default().labels("mirror=original");
    let live = api.list(&originals).await.map_err(|error| error.to_string())?;
    let live: HashMap<_, _> =
        live.iter().map(|object| (object.name_any(), object.resource_version())).collect();
    let sightings = sightings.lock();
    let mut missed: Vec<_> =
        live.iter().filter(|(name, version)| sightings.get(*name) != Some(version)).collect();
    missed.extend(sightings.iter().filter(|(name, version)| version.is_some() && !live.contains_key(*name)));
    if missed.is_empty() { Ok(()) } else { Err(format!("{missed:?}")) }
}

/// Fails with an original whose copy differs.
async fn astray(api: &Api<ConfigMap>) -> Result<(), String> {
    let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let all: HashMap<_, _> = all.iter().map(|object| (object.name_any(), object)).collect();
    let astray = all.iter().find(|(name, object)| {
        object.labels().get("mirror").is_some_and(|label| label == "original")
            && value(Some(object)) != value(all.get(&format!("{name}-copy")).copied())
    });
    astray.map_or(Ok(()), |(name, _)| Err(name.clone()))
}
