//! Whatever the network does: in the end, the last version of every object has been reconciled.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod operator;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use operator::{Mirror, Operator, Runs, cache, client, labelled, original, value};
use parking_lot::Mutex;
use serde_json::json;
use windlass_runtime::cache::{Full, Shape as _};
use windlass_runtime::controller::{Controller, Error, Outcome};
use windlass_runtime::key::ObjectKey;
use windlass_testenv::proxy::{Action, Answer, Fault, Match, Verb, WatchFault};
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_version_of_every_object_is_reconciled_whatever_the_network_does() -> Result<()> {
    const OBJECTS: u64 = 60;
    const STEPS: u64 = 400;
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("faults").await?;
    let user = namespace.client_for("faults", &Rules::everything()).await?;
    let proxy = env.fault_proxy().await?;
    let client = client(user.config_through(&proxy.url())?)?;
    let watched = cache(&client);

    // Notes for each key what a reconcile saw last, and fails now and then for good measure.
    let configs = watched.reader::<Full<ConfigMap>>(&labelled(namespace.name(), "mirror=original")?);
    let seen: Arc<Mutex<HashMap<String, Option<String>>>> = Arc::default();
    let observer = {
        let (configs, seen) = (configs.clone(), Arc::clone(&seen));
        let failures = Runs::default();
        Controller::for_(&configs).name("observer").workers(3).build(move |key: ObjectKey| {
            let object = configs.get(&key);
            let fails = failures.count(&key) % 5 == 0;
            let seen = Arc::clone(&seen);
            async move {
                tokio::task::yield_now().await;
                if fails {
                    return Err(Error::transient("now and then"));
                }
                let version = object.map(|object| object.meta().resource_version.to_string());
                seen.lock().insert(key.name().to_owned(), version);
                Ok(Outcome::Done)
            }
        })?
    };
    // And one that writes through the same bad network.
    let mirror = Mirror::new(&client, &watched, namespace.name())?.controller(&Runs::default())?;
    let running = Operator::start(&watched, [observer, mirror])?;

    let api = namespace.api::<ConfigMap>();
    let watches = Match::watches().resource("configmaps");
    let mut dice = Dice(42);
    for step in 0..STEPS {
        let name = format!("o{}", dice.roll(OBJECTS));
        match dice.roll(10) {
            0 => drop(api.delete(&name, &DeleteParams::default()).await),
            1..=4 => drop(api.create(&PostParams::default(), &original(&name, &step.to_string())).await),
            _ => {
                let change = Patch::Merge(json!({"data": {"value": step.to_string()}}));
                drop(api.patch(&name, &PatchParams::default(), &change).await);
            }
        }
        if step % 7 == 0 {
            let writes = || Fault::on(Match::verb(Verb::Apply).resource("configmaps")).first();
            match dice.roll(8) {
                0 => drop(proxy.cut_watches(&watches)),
                1 => {
                    drop(proxy.add(Fault::on(watches.clone()).first().then(WatchFault::Tear.after_events(2))))
                }
                2 => drop(proxy.add(Fault::on(watches.clone()).times(2).then(Answer::internal_error()))),
                3 => {
                    drop(
                        proxy.add(
                            Fault::on(watches.clone()).first().then(WatchFault::Error(Answer::expired())),
                        ),
                    );
                    proxy.cut_watches(&watches);
                }
                4 => drop(proxy.add(writes().then(Action::DropAfter))),
                5 => drop(proxy.add(writes().then(Answer::unavailable()))),
                6 => drop(proxy.add(writes().then(Answer::conflict()))),
                _ => drop(proxy.add(writes().then(Action::DropBefore))),
            }
        }
    }
    let hurt = proxy.seen().iter().filter(|seen| seen.fault.is_some()).count();
    assert!(hurt > 20, "only {hurt} requests were hurt: this was no test");
    proxy.clear();

    // The last changes are made while nobody can see them, and what was missed can only be listed again.
    let frozen = proxy.freeze_watches(&watches);
    for n in 0..OBJECTS {
        let name = format!("o{n}");
        match n % 3 {
            0 => drop(api.delete(&name, &DeleteParams::default()).await),
            1 => drop(api.create(&PostParams::default(), &original(&name, "last")).await),
            _ => drop(
                api.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "last"}})))
                    .await,
            ),
        }
    }
    let gone = proxy.add(Fault::on(watches.clone()).times(2).then(Answer::expired()));
    proxy.cut_watches(&watches);
    drop(frozen);
    gone.wait_for_hits(2).await?;

    let originals = ListParams::default().labels("mirror=original");
    eventually("every object's last version was reconciled", || async {
        let live = api.list(&originals).await.map_err(|error| error.to_string())?;
        let live: HashMap<_, _> =
            live.iter().map(|object| (object.name_any(), object.resource_version())).collect();
        let seen = seen.lock().clone();
        let mut wrong: Vec<_> =
            live.iter().filter(|(name, version)| seen.get(*name) != Some(version)).collect();
        let ghosts = seen.iter().filter(|(name, version)| version.is_some() && !live.contains_key(*name));
        wrong.extend(ghosts);
        if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:?}")) }
    })
    .await?;
    eventually("every copy follows its original", || async {
        let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let all: HashMap<_, _> = all.iter().map(|object| (object.name_any(), object)).collect();
        let astray = all.iter().find(|(name, object)| {
            object.labels().get("mirror").is_some_and(|label| label == "original")
                && value(Some(object)) != value(all.get(&format!("{name}-copy")).copied())
        });
        astray.map_or(Ok(()), |(name, _)| Err(name.clone()))
    })
    .await?;
    running.stop().await
}
