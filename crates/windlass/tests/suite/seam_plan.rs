//! A plan and the objects that exist: when objects are deleted, and on behalf of which owner.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanController, PlanError};
use windlass_testenv::proxy::{Action, Answer, Fault, Match, RequestVerb};
use windlass_testenv::{Story, TestEnv, eventually, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Gadget, GadgetSpec, Item, deployment, note, one_by_one};
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
    assert_eq!(Story::Ready.tell(&corner.namespace.api::<Pod>(), "app=new").await?, 1);
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

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_an_object_goes_when_its_replacement_is_ready_though_others_are_not() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "replaced").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let stuck = || Item::of(deployment("stuck", Story::ImagePullError));
    corner.bundle("one", vec![stuck(), Item::of(note("old")), Item::of(note("other"))]).await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "Deployment stuck").await?;
    let mark = corner.mark()?;
    let new = Item::of(deployment("new", Story::ImagePullError));
    let old = Item::of(note("old")).replaced_by("Deployment new");
    corner.respec("one", &spec(vec![stuck(), new, old])).await?;
    let waits = "are deleted when everything else is ready";
    let (_, message) = corner.until_message::<Bundle>("one", "Ready", "False", waits).await?;
    assert!(message.contains("ConfigMap old") && message.contains("ConfigMap other"), "{message}");
    corner.nudge("one").await?;
    assert_eq!(corner.deletes(mark)?, [""; 0], "the replacement is not ready");

    eventually("there is a pod to be released", || async {
        let told = Story::Ready.tell(&corner.namespace.api::<Pod>(), "app=new").await;
        if told.as_ref().is_ok_and(|told| *told == 1) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await?;
    corner.gone("ConfigMap", "old").await?;
    let waits = "ConfigMap other is deleted when everything else is ready";
    corner.until_message::<Bundle>("one", "Ready", "False", waits).await?;
    assert_eq!(corner.deletes(mark)?, ["configmaps old"], "which was replaced");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_an_object_that_fills_a_quota_is_named_as_a_cause() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "quota").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(service("old", None))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let quotas = corner.namespace.api::<ResourceQuota>();
    let quota = json!({"metadata": {"name": "one-service"}, "spec": {"hard": {"services": "1"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    eventually("the quota is counted", || async {
        let quota = json!(quotas.get("one-service").await.map_err(|error| error.to_string())?);
        if quota["status"]["used"]["services"] == "1" { Ok(()) } else { Err(quota["status"].to_string()) }
    })
    .await?;
    let mark = corner.mark()?;
    corner.respec("one", &spec(vec![Item::of(service("new", None))])).await?;
    let cause = "Service old has left the plan and may be in its way: if so, delete it";
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", cause).await?;
    assert_eq!(reason, "Forbidden", "{message}");
    assert!(message.contains("exceeded quota"), "{message}");
    corner.nudge("one").await?;
    assert_eq!(corner.deletes(mark)?, [""; 0]);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_an_object_that_may_cause_a_conflict_is_named_as_a_cause() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "conflict").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), one_by_one(Bundles::default()))?;
    operator.ready().await?;
    corner.bundle("one", vec![Item::of(note("old"))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    // A webhook of somebody else admits one of them at a time.
    let new = Match::verb(RequestVerb::Apply).resource("configmaps").name("new");
    let refused = proxy.add(Fault::on(new).then(Answer::new(409, "Conflict", "there is an old one")));
    let mark = corner.mark()?;
    corner.respec("one", &spec(vec![Item::of(note("new"))])).await?;
    let cause = "ConfigMap old has left the plan and may be in its way: if so, delete it";
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", cause).await?;
    assert_eq!(reason, "Conflict", "{message}");
    assert_eq!(corner.deletes(mark)?, [""; 0]);
    refused.remove();
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.gone("ConfigMap", "old").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_h3_data_is_deleted_last() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "data-last").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    // By the order of the plan alone, the claim would be deleted first.
    let items = vec![
        Item::of(note("stays")),
        Item::of(note("a")),
        Item::of(claim).after("ConfigMap a").delete(),
        Item::of(note("b")),
    ];
    corner.bundle("one", items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let mark = corner.mark()?;
    corner.respec("one", &spec(vec![Item::of(note("stays"))])).await?;
    corner.gone("PersistentVolumeClaim", "data").await?;
    let mut deletes = corner.deletes(mark)?;
    let last = deletes.pop();
    deletes.sort();
    assert_eq!(deletes, ["configmaps a", "configmaps b"]);
    assert_eq!(last.as_deref(), Some("persistentvolumeclaims data"));
    operator.stop().await
}

/// A blueprint with an object of a kind that need not be installed.
struct Optional;

impl Controls for Optional {
    type Owner = Bundle;
    const NAME: &'static str = "optional.test.windlass.dev";
    const DELETION: Deletion<Bundle> = Deletion::Ordered;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns_if_installed::<Gadget>();
    }
}

impl Blueprint for Optional {
    fn draw(&self, _: &Bundle, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        plan.add(Gadget::new("a", GadgetSpec { words: Some("a".into()), ..GadgetSpec::default() }));
        Ok(())
    }
}

/// Deletes an owner while no operator runs, and starts one that cannot list a kind of the owner's objects.
/// The owner must stay until that kind was listed.
async fn tear_down_unlisted(hint: &str, fault: Action, words: &str) -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), hint).await?;
    let operator = corner.operate(PlanController::of(Optional)).await?;
    corner.bundle("one", Vec::new()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await?;
    corner.delete("Bundle", "one").await?;

    let proxy = corner.env.fault_proxy().await?;
    let lists = Match::verbs([RequestVerb::List, RequestVerb::Watch]).resource("gadgets");
    let unlisted = proxy.add(Fault::on(lists).then(fault));
    let config = corner.user.config_through(&proxy.url())?;
    let mark = corner.mark()?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Optional))?;
    operator.ready().await?;
    let is_told = |object: &Value| {
        let all = object["status"]["conditions"].as_array().into_iter().flatten();
        let mut messages = all.filter_map(|condition| condition["message"].as_str());
        messages.any(|message| message.starts_with("deleting: ") && message.contains(words))
    };
    let owner = corner.until_object("test.windlass.dev/v1", "Bundle", "one", is_told).await?;
    assert_ne!(owner["metadata"]["finalizers"], Value::Null);
    corner.until_object("test.windlass.dev/v1", "Gadget", "a", |gadget| !gadget.is_null()).await?;

    unlisted.remove();
    corner.gone("Bundle", "one").await?;
    assert_eq!(corner.deletes(mark)?, ["gadgets a"], "before its owner was gone");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_low_a_teardown_right_after_a_start_waits_until_every_kind_was_listed() -> Result<()> {
    // The list has not ended, or was given up and is tried again.
    tear_down_unlisted("unlisted", Action::Hold, "adget").await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_low_a_teardown_waits_for_a_kind_that_may_not_be_listed() -> Result<()> {
    tear_down_unlisted("unlistable", Answer::forbidden().into(), "may not be read: grant").await
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
