//! A plan and the objects that exist: when objects are deleted, and on behalf of which owner.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanController, PlanError};
use windlass_testenv::proxy::{Match, RequestVerb};
use windlass_testenv::{Story, TestEnv, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Item, deployment, note, one_by_one};
use kit::{Corner, Operator};

fn service(name: &str, node_port: Option<i64>) -> Value {
    let mut port = json!({"port": 80});
    if let Some(node_port) = node_port {
        port["nodePort"] = node_port.into();
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [port]}})
}

fn spec(items: Vec<Item>) -> BundleSpec {
    BundleSpec { items, ..BundleSpec::default() }
}

impl Corner {
    fn deletes(&self, mark: windlass_testenv::Mark) -> Result<Vec<String>> {
        let writes = self.object_writes(mark)?.into_iter();
        Ok(writes.filter_map(|write| write.strip_prefix("delete ").map(str::to_owned)).collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m1_an_owner_whose_plan_was_never_drawn_can_be_deleted() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "never-drawn").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let spec = BundleSpec { broken: true, ordered: true, ..BundleSpec::default() };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new("one", spec)).await?;
    assert_eq!(corner.until::<Bundle>("one", "Failed", "True").await?.0, "DrawFailed");
    assert_eq!(corner.object("Bundle", "one").await?["metadata"]["finalizers"], Value::Null);
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n1_an_owner_whose_plan_can_no_longer_be_drawn_is_deleted_by_its_inventory() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "no-longer-drawn").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let items = vec![Item::of(note("a")), Item::of(note("b")).after("ConfigMap a")];
    let spec = BundleSpec { items, ordered: true, ..BundleSpec::default() };
    corner
        .namespace
        .api::<Bundle>()
        .create(&PostParams::default(), &Bundle::new("one", spec.clone()))
        .await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.respec("one", &BundleSpec { broken: true, ..spec }).await?;
    assert_eq!(corner.until::<Bundle>("one", "Failed", "True").await?.0, "DrawFailed");
    let mark = corner.mark()?;
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    assert_eq!(corner.deletes(mark)?, ["configmaps b", "configmaps a"], "dependents first");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m2_an_operator_that_does_not_know_the_present_spec_prunes_nothing() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "lagging").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let lagging = Operator::with(config, corner.namespace.name(), one_by_one(Bundles::default()))?;
    lagging.ready().await?;
    corner.bundle("one", vec![Item::of(note("a"))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;

    let frozen = proxy.freeze_watches(&Match::watches().resource("bundles"));
    let (before, last) = (lagging.reconciles(), proxy.last_sequence());
    corner.respec("one", &spec(vec![Item::of(note("a")), Item::of(note("b"))])).await?;
    let current = corner.operate(one_by_one(Bundles::default())).await?;
    corner.until_object("v1", "ConfigMap", "b", |object| !object.is_null()).await?;
    lagging.looked_after(before).await?;
    let deletes = proxy
        .seen()
        .iter()
        .filter(|seen| seen.sequence > last)
        .filter(|seen| seen.request.verb == RequestVerb::Delete)
        .count();
    assert_eq!(deletes, 0, "what the present spec has was deleted by an older one");
    frozen.release();
    current.stop().await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "b").await?;
    lagging.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_a_workload_stays_until_its_replacement_is_ready() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "make-first").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(deployment("old", Story::Ready))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let mark = corner.mark()?;
    corner.respec("one", &spec(vec![Item::of(deployment("new", Story::ImagePullError))])).await?;
    let waits = "Deployment old is deleted when everything else is ready";
    let (_, message) = corner.until_message::<Bundle>("one", "Ready", "False", waits).await?;
    assert!(message.starts_with("waiting for Deployment new: "), "{message}");
    corner.nudge("one").await?;
    assert_eq!(corner.deletes(mark)?, [""; 0]);

    // Not before there is a pod to be released.
    corner.until_message::<Bundle>("one", "Ready", "False", "ImagePullBackOff").await?;
    assert_eq!(Story::Ready.assign_to(&corner.namespace.api::<Pod>(), "app=new").await?, 1);
    corner.gone("Deployment", "old").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_what_leaves_the_plan_waits_for_an_unrelated_workload_and_the_status_says_so() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "unrelated").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let stuck = || Item::of(deployment("stuck", Story::ImagePullError));
    corner.bundle("one", vec![stuck(), Item::of(note("a")), Item::of(note("b")).pruned_first()]).await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "Deployment stuck").await?;
    let mark = corner.mark()?;
    corner.respec("one", &spec(vec![stuck()])).await?;
    let waits = "ConfigMap a is deleted when everything else is ready";
    corner.until_message::<Bundle>("one", "Ready", "False", waits).await?;
    corner.nudge("one").await?;
    assert_eq!(corner.deletes(mark)?, ["configmaps b"], "which was planned to go first");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_a_service_stays_while_its_replacement_is_refused_and_is_named_as_a_cause() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "refused-first").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(service("old", None))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let port = corner.object("Service", "old").await?["spec"]["ports"][0]["nodePort"].as_i64();
    let mark = corner.mark()?;
    corner.respec("one", &spec(vec![Item::of(service("new", port))])).await?;
    let cause = "Service old has left the plan and may be in its way";
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", cause).await?;
    assert_eq!(reason, "Invalid", "{message}");
    corner.nudge("one").await?;
    assert_eq!(corner.deletes(mark)?, [""; 0]);

    // The user deletes the object; the refused write is tried again at once.
    corner.delete("Service", "old").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("Service", "new").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_a_service_that_goes_first_hands_its_node_port_over() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "hand-over").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(service("old", None)).pruned_first()]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let port = corner.object("Service", "old").await?["spec"]["ports"][0]["nodePort"].as_i64();
    corner.respec("one", &spec(vec![Item::of(service("new", port))])).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.gone("Service", "old").await?;
    assert_eq!(corner.object("Service", "new").await?["spec"]["ports"][0]["nodePort"].as_i64(), port);
    operator.stop().await
}

/// A blueprint with a plan that changes: it counts its draws.
#[derive(Default)]
struct Restless {
    draws: AtomicU64,
    /// The number of consecutive draws that give the same plan.
    same: u64,
}

impl Controls for Restless {
    type Owner = Bundle;
    const NAME: &'static str = "restless.test.windlass.dev";
    const DELETION: Deletion<Bundle> = Deletion::GarbageCollected;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>();
    }
}

impl Blueprint for Restless {
    fn draw(&self, _: &Bundle, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let draws = self.draws.fetch_add(1, Ordering::Relaxed) / self.same;
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"draws": draws.to_string()}}))?;
        plan.add(map);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m7_a_plan_that_differs_when_drawn_twice_is_refused_in_debug_builds() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "twice").await?;
    let operator = corner.operate(PlanController::of(Restless { same: 1, ..Restless::default() })).await?;
    let mark = corner.mark()?;
    corner.bundle("one", Vec::new()).await?;
    let words = "the plan is not the same when it is drawn twice: ConfigMap a has other content";
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", words).await?;
    assert_eq!(reason, "DrawFailed");
    assert_eq!(corner.object_writes(mark)?, [""; 0]);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m7_a_plan_that_never_comes_to_rest_stops_writing_and_says_so() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "restless").await?;
    // Two draws for each reconcile: a debug build draws twice.
    let operator = corner.operate(PlanController::of(Restless { same: 2, ..Restless::default() })).await?;
    let mark = corner.mark()?;
    corner.bundle("one", Vec::new()).await?;
    let words = "ConfigMap a: it has been written 20 times, with other content each time";
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", words).await?;
    assert_eq!(reason, "Fighting");
    assert_eq!(corner.writes_of(mark, "configmaps a")?.len(), 20);
    operator.stop().await
}
