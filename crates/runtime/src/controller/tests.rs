//! Tests of whole controllers over a cache that the test feeds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::*;
use crate::cache::feed::Feed;
use crate::cache::{Cause, MetadataOnly, Problem};
use crate::controller::predicate::{generation_changed, matches};
use crate::manager::Stopper;

type Owner = MetadataOnly<Deployment>;
type Child = MetadataOnly<ConfigMap>;

/// A controller that counts the reconciles of each key.
struct Bench {
    runs: watch::Sender<HashMap<String, usize>>,
    metrics: Metrics,
    stopper: Option<Stopper>,
    task: Option<JoinHandle<Result<(), WorkerLost>>>,
}

impl Bench {
    fn new() -> Self {
        Self { runs: watch::Sender::default(), metrics: Metrics::new(), stopper: None, task: None }
    }

    fn reconciler(&self) -> impl Reconcile + use<> {
        let runs = self.runs.clone();
        move |key: ObjectKey| {
            runs.send_modify(|runs| *runs.entry(key.to_string()).or_default() += 1);
            async { Ok(Requeue::OnChange) }
        }
    }

    fn start(&mut self, controller: &Controller) {
        let (stopper, stop) = Stop::pair();
        let (controller, metrics) = (controller.clone(), self.metrics.clone());
        self.stopper = Some(stopper);
        self.task = Some(tokio::spawn(async move { controller.run(&metrics, || (), stop).await }));
    }

    async fn reconciled(&self, key: &str, times: usize) {
        let mut runs = self.runs.subscribe();
        let wait = runs.wait_for(|runs| runs.get(key).copied().unwrap_or_default() >= times);
        tokio::time::timeout(Duration::from_mins(1), wait)
            .await
            .unwrap_or_else(|_| panic!("{key} was not reconciled"))
            .unwrap();
    }

    fn runs(&self, key: &str) -> usize {
        self.runs.borrow().get(key).copied().unwrap_or_default()
    }

    async fn stop(&mut self) -> Result<(), WorkerLost> {
        drop(self.stopper.take());
        self.task.take().unwrap().await.unwrap()
    }
}

/// Lets everything run that can; the paused clock advances only when nothing can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn object(name: &str, version: u32) -> serde_json::Value {
    json!({"metadata": {"name": name, "namespace": "shop", "resourceVersion": version.to_string(), "generation": 1,
        "uid": format!("0b8d1c1e-9b1f-4f0e-8a63-{:012x}", name.bytes().map(u64::from).sum::<u64>())}})
}

fn owned_by(owner: &str, name: &str, version: u32) -> serde_json::Value {
    let mut child = object(name, version);
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner,
        "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9e", "controller": true}]);
    child
}

fn missing() -> SyncState {
    SyncState::Blocked(Arc::new(Problem {
        resource: ResourceType::of::<ConfigMap>(),
        cause: Cause::Missing,
        message: String::new(),
        since: Timestamp::UNIX_EPOCH,
    }))
}

#[tokio::test(start_paused = true)]
async fn c4_no_key_is_reconciled_before_every_list_has_been_handled() {
    let (owners, children) = (Feed::<Owner>::new(), Feed::<Child>::new());
    let mut bench = Bench::new();
    let controller =
        Controller::for_(owners.reader()).owns(children.reader()).build(bench.reconciler()).unwrap();
    bench.start(&controller);
    owners.list(&[object("web", 1)], 1);
    owners.state(&SyncState::Synced);
    settle().await;
    assert_eq!(bench.runs("shop/web"), 0);
    children.list(&[owned_by("api", "config", 2)], 2);
    children.state(&SyncState::Synced);
    bench.reconciled("shop/web", 1).await;
    bench.reconciled("shop/api", 1).await;
}

#[tokio::test(start_paused = true)]
async fn c8_changes_of_the_own_kind_of_owned_and_of_mapped_objects_are_reconciled() {
    let (owners, children, others) = (Feed::<Owner>::new(), Feed::<Child>::new(), Feed::<Child>::new());
    let mut bench = Bench::new();
    let controller = Controller::for_(owners.reader())
        .owns(children.reader())
        .watches(others.reader(), |other: &Child| [ObjectKey::namespaced("mapped", other.name())])
        .build(bench.reconciler())
        .unwrap();
    for feed in [&children, &others] {
        feed.list(&[], 1);
        feed.state(&SyncState::Synced);
    }
    owners.list(&[], 1);
    owners.state(&SyncState::Synced);
    bench.start(&controller);
    owners.apply(&object("web", 2));
    bench.reconciled("shop/web", 1).await;
    children.apply(&owned_by("web", "config", 3));
    bench.reconciled("shop/web", 2).await;
    others.apply(&object("secret", 4));
    bench.reconciled("mapped/secret", 1).await;
    owners.delete(&object("web", 5));
    bench.reconciled("shop/web", 3).await;
    bench.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn b14_a_predicate_applies_to_its_own_watch_only_and_never_drops_a_deletion() {
    let (owners, children) = (Feed::<Owner>::new(), Feed::<Child>::new());
    let mut bench = Bench::new();
    let controller = Controller::for_(Watch::of(&owners.reader()).when(generation_changed()))
        .owns(children.reader())
        .build(bench.reconciler())
        .unwrap();
    owners.list(&[object("web", 1)], 1);
    owners.state(&SyncState::Synced);
    children.list(&[], 1);
    children.state(&SyncState::Synced);
    bench.start(&controller);
    bench.reconciled("shop/web", 1).await;
    owners.apply(&object("web", 2));
    settle().await;
    assert_eq!(bench.runs("shop/web"), 1);
    children.apply(&owned_by("web", "config", 3));
    bench.reconciled("shop/web", 2).await;
    owners.delete(&object("web", 4));
    bench.reconciled("shop/web", 3).await;
}

#[tokio::test(start_paused = true)]
async fn d10_a_missing_kind_delays_only_the_controller_that_needs_it_until_it_appears() {
    let (owners, children) = (Feed::<Owner>::new(), Feed::<Child>::new());
    owners.list(&[object("web", 1)], 1);
    owners.state(&SyncState::Synced);
    children.state(&missing());
    let (mut needs, mut does_not) = (Bench::new(), Bench::new());
    let needing =
        Controller::for_(owners.reader()).owns(children.reader()).build(needs.reconciler()).unwrap();
    let going_without = Controller::for_(owners.reader())
        .owns(Watch::of(&children.reader()).optional())
        .build(does_not.reconciler())
        .unwrap();
    needs.start(&needing);
    does_not.start(&going_without);
    does_not.reconciled("shop/web", 1).await;
    // Longer than the two minutes after which controller-runtime gives up.
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(needs.runs("shop/web"), 0);
    assert!(!needs.task.as_ref().unwrap().is_finished());

    children.list(&[owned_by("api", "config", 2)], 2);
    children.state(&SyncState::Synced);
    needs.reconciled("shop/web", 1).await;
    needs.reconciled("shop/api", 1).await;
    does_not.reconciled("shop/api", 1).await;
}

#[tokio::test(start_paused = true)]
async fn d4_a_stop_is_obeyed_at_once_while_a_cache_cannot_sync() {
    let owners = Feed::<Owner>::new();
    owners.state(&missing());
    let mut bench = Bench::new();
    let controller = Controller::for_(owners.reader()).build(bench.reconciler()).unwrap();
    bench.start(&controller);
    settle().await;
    let began = tokio::time::Instant::now();
    bench.stop().await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_reconciles_in_flight_and_drops_queued_keys() {
    let owners = Feed::<Owner>::new();
    owners.list(&[object("a", 1), object("b", 2)], 2);
    owners.state(&SyncState::Synced);
    let bench = Bench::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let controller = Controller::for_(owners.reader())
        .build(move |_| {
            let log = Arc::clone(&log);
            async move {
                log.lock().push("begun");
                tokio::time::sleep(Duration::from_secs(9)).await;
                log.lock().push("finished");
                Ok(Requeue::OnChange)
            }
        })
        .unwrap();
    let mut bench = bench;
    bench.start(&controller);
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.stop().await.unwrap();
    assert_eq!(*seen.lock(), ["begun", "finished"]);
}

#[tokio::test(start_paused = true)]
async fn b5_a_controller_without_a_kind_gets_keys_from_channels_and_mappings() {
    let (sender, receiver) = mpsc::channel(8);
    sender.send(ObjectKey::cluster("before-the-start")).await.unwrap();
    let mut bench = Bench::new();
    let controller = Controller::named("outside").channel(receiver).build(bench.reconciler()).unwrap();
    bench.start(&controller);
    bench.reconciled("before-the-start", 1).await;
    bench.stop().await.unwrap();
    // A second run takes the channel again.
    sender.send(ObjectKey::cluster("between")).await.unwrap();
    bench.start(&controller);
    bench.reconciled("between", 1).await;
    drop(sender);
    settle().await;
    assert!(!bench.task.as_ref().unwrap().is_finished(), "a closed channel is no error");
    bench.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panicking_mapping_is_counted_and_affects_nothing_else() {
    let owners = Feed::<Owner>::new();
    owners.list(&[], 1);
    owners.state(&SyncState::Synced);
    let mut bench = Bench::new();
    let controller = Controller::for_(owners.reader())
        .watches(
            Watch::of(&owners.reader()).when(matches(|owner: &Owner| owner.name() == "bad")),
            |_| -> Vec<ObjectKey> { panic!("mapping") },
        )
        .build(bench.reconciler())
        .unwrap();
    bench.start(&controller);
    settle().await;
    owners.apply(&object("bad", 2));
    owners.apply(&object("good", 3));
    bench.reconciled("shop/good", 1).await;
    bench.reconciled("shop/bad", 1).await;
    assert!(
        bench
            .metrics
            .encode()
            .contains("controller_runtime_reconcile_panics_total{controller=\"deployment\"} 1")
    );
}

#[tokio::test(start_paused = true)]
async fn keys_of_the_initial_list_wait_for_changed_keys() {
    let owners = Feed::<Owner>::new();
    owners.list(&[object("a", 1), object("b", 2), object("c", 3)], 3);
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&order);
    let mut bench = Bench::new();
    let runs = bench.runs.clone();
    let controller = Controller::for_(owners.reader())
        .build(move |key: ObjectKey| {
            log.lock().push(key.name().to_owned());
            runs.send_modify(|runs| *runs.entry(key.to_string()).or_default() += 1);
            async { Ok(Requeue::OnChange) }
        })
        .unwrap();
    bench.start(&controller);
    settle().await;
    owners.apply(&object("c", 4));
    owners.state(&SyncState::Synced);
    bench.reconciled("shop/b", 1).await;
    assert_eq!(*order.lock(), ["c", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_spec_resets_the_backoff_unless_configured_otherwise() {
    for (keep, expected) in [(false, 1), (true, 4)] {
        let owners = Feed::<Owner>::new();
        owners.list(&[object("web", 1)], 1);
        owners.state(&SyncState::Synced);
        let attempts = watch::Sender::new(0_usize);
        let count = attempts.clone();
        let mut bench = Bench::new();
        let watch = Watch::of(&owners.reader());
        let backoff = Backoff { base: Duration::from_secs(1), jitter: 0.0, ..Backoff::default() };
        let controller = Controller::for_(if keep { watch.keep_backoff() } else { watch })
            .backoff(backoff)
            .build(move |_| {
                count.send_modify(|attempts| *attempts += 1);
                async { Err(Error::transient("no")) }
            })
            .unwrap();
        bench.start(&controller);
        let mut attempts = attempts.subscribe();
        attempts.wait_for(|attempts| *attempts == 3).await.unwrap();
        settle().await;
        let mut changed = object("web", 2);
        changed["metadata"]["generation"] = 2.into();
        owners.apply(&changed);
        attempts.wait_for(|attempts| *attempts == 4).await.unwrap();
        let began = tokio::time::Instant::now();
        attempts.wait_for(|attempts| *attempts == 5).await.unwrap();
        assert_eq!((began.elapsed() + Duration::from_millis(500)).as_secs(), expected, "keep: {keep}");
        bench.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn d13_the_watch_ends_with_the_controller_and_its_last_reader() {
    let owners = Feed::<Owner>::new();
    let bench = Bench::new();
    let reader = owners.reader();
    let controller = Controller::for_(&reader).build(bench.reconciler()).unwrap();
    drop(reader);
    assert!(owners.is_followed());
    drop(controller);
    assert!(!owners.is_followed());
}

#[test]
fn b1_to_b4_a_controller_that_would_never_run_is_an_error() {
    let reconciler = |_: ObjectKey| async { Ok(Requeue::OnChange) };
    let owners = Feed::<Owner>::new().reader();
    assert_eq!(Controller::named("x").build(reconciler).unwrap_err(), BuildError::Deaf("x".into()));
    assert_eq!(Controller::for_(&owners).name("").build(reconciler).unwrap_err(), BuildError::Unnamed);
    let idle = Controller::for_(&owners).workers(0).build(reconciler);
    assert_eq!(idle.unwrap_err(), BuildError::Idle("deployment".into()));
    assert_eq!(Controller::for_(&owners).build(reconciler).unwrap().name(), "deployment");
}

#[tokio::test]
async fn keys_are_reconciled_in_parallel_by_all_workers() {
    let (sender, receiver) = mpsc::channel(8);
    for key in ["a", "b", "c"] {
        sender.send(ObjectKey::cluster(key)).await.unwrap();
    }
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let passed = watch::Sender::new(0_usize);
    let count = passed.clone();
    let controller = Controller::named("parallel")
        .channel(receiver)
        .workers(3)
        .build(move |_| {
            let (barrier, count) = (Arc::clone(&barrier), count.clone());
            async move {
                barrier.wait().await;
                count.send_modify(|count| *count += 1);
                Ok(Requeue::OnChange)
            }
        })
        .unwrap();
    let mut bench = Bench::new();
    bench.start(&controller);
    passed.subscribe().wait_for(|count| *count == 3).await.unwrap();
    bench.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn background_keys_wait_for_fresh_changes() {
    let (chores, background) = mpsc::channel(8);
    let (fresh, channel) = mpsc::channel(8);
    for key in ["chore-1", "chore-2"] {
        chores.send(ObjectKey::cluster(key)).await.unwrap();
    }
    let began = watch::Sender::new(Vec::new());
    let order = began.clone();
    let controller = Controller::named("priorities")
        .background(background)
        .channel(channel)
        .build(move |key: ObjectKey| {
            order.send_modify(|order| order.push(key.name().to_owned()));
            async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(Requeue::OnChange)
            }
        })
        .unwrap();
    let mut bench = Bench::new();
    bench.start(&controller);
    began.subscribe().wait_for(|order| order.len() == 1).await.unwrap();
    fresh.send(ObjectKey::cluster("fresh")).await.unwrap();
    began.subscribe().wait_for(|order| order.len() == 3).await.unwrap();
    assert_eq!(*began.borrow(), ["chore-1", "fresh", "chore-2"]);
    bench.stop().await.unwrap();
}
