//! The status of an owner as others read it: its parent, its user, a tool that waits for it.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use windlass::{DigestKey, PlanController};
use windlass_testenv::proxy::{Action, Answer, Fault, Match, RequestVerb};
use windlass_testenv::{Story, TestEnv, eventually, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Item, deployment, note, one_by_one};
use kit::{Corner, Operator};

/// A bundle as an object of another bundle.
fn child(spec: &BundleSpec) -> Item {
    Item::of(
        json!({"apiVersion": "test.windlass.dev/v1", "kind": "Bundle", "metadata": {"name": "child"}, "spec": spec}),
    )
}

fn notes(names: &[&str]) -> BundleSpec {
    BundleSpec { items: names.iter().map(|name| Item::of(note(name))).collect(), ..BundleSpec::default() }
}

impl Corner {
    /// Returns the names of all Services.
    async fn services(&self) -> Result<Vec<String>> {
        let services = self.namespace.api::<Service>().list(&ListParams::default()).await?;
        Ok(services.items.iter().map(ResourceExt::name_any).collect())
    }
}

fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n5_a_parent_says_why_the_plan_of_its_child_cannot_be_drawn() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "child").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    corner.bundle("parent", vec![child(&notes(&["a"]))]).await?;
    corner.until::<Bundle>("parent", "Ready", "True").await?;
    let broken = BundleSpec { broken: true, ..notes(&["a"]) };
    corner.respec("parent", &BundleSpec { items: vec![child(&broken)], ..BundleSpec::default() }).await?;
    let words = "Bundle child: it failed (DrawFailed: spec.broken is true: make it false)";
    corner.until_message::<Bundle>("parent", "Ready", "False", words).await?;
    let child = corner.object("Bundle", "child").await?;
    assert_eq!(child["status"]["observedGeneration"], child["metadata"]["generation"]);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n5_a_spec_that_removes_most_objects_explains_it_until_its_plan_was_complete() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "explained").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", notes(&["a", "b", "c"]).items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    // An error in the spec, then a replacement that is not ready for a while: both are observed, neither is
    // complete.
    corner.respec("one", &BundleSpec { broken: true, ..BundleSpec::default() }).await?;
    assert_eq!(corner.until::<Bundle>("one", "Failed", "True").await?.0, "DrawFailed");
    let items = vec![Item::of(deployment("new", Story::ImagePullError))];
    corner.respec("one", &BundleSpec { items, ..BundleSpec::default() }).await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "deleted when everything else is ready").await?;
    let status = corner.object("Bundle", "one").await?["status"].clone();
    assert_eq!(
        (&status["observedGeneration"], &status["completeGeneration"]),
        (&json!(3), &json!(1)),
        "{status}"
    );

    // Not before there is a pod to be released.
    corner.until_message::<Bundle>("one", "Ready", "False", "ImagePullBackOff").await?;
    assert_eq!(Story::Ready.tell(&corner.namespace.api::<Pod>(), "app=new").await?, 1);
    corner.until::<Bundle>("one", "Ready", "True").await?;
    for name in ["a", "b", "c"] {
        corner.gone("ConfigMap", name).await?;
    }
    let is_complete = |object: &Value| {
        object["status"]["observedGeneration"] == 3 && object["status"]["completeGeneration"].is_null()
    };
    corner.until_object("test.windlass.dev/v1", "Bundle", "one", is_complete).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m16_an_owner_says_in_the_words_of_kstatus_whether_it_is_at_work_or_stuck() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "kstatus").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(deployment("web", Story::ImagePullError))]).await?;
    let (_, message) = corner.until_message::<Bundle>("one", "Reconciling", "True", "Deployment web").await?;
    assert!(message.starts_with("waiting for Deployment web: "), "{message}");
    assert_eq!(condition(&corner.object("Bundle", "one").await?, "Stalled"), Value::Null);

    corner.respec("one", &BundleSpec { broken: true, ..BundleSpec::default() }).await?;
    let (reason, _) = corner.until_message::<Bundle>("one", "Stalled", "True", "spec.broken is true").await?;
    assert_eq!(reason, "DrawFailed");
    assert_eq!(condition(&corner.object("Bundle", "one").await?, "Reconciling"), Value::Null);

    corner.respec("one", &notes(&["a"])).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let is_at_rest =
        |object: &Value| condition(object, "Reconciling").is_null() && condition(object, "Stalled").is_null();
    corner.until_object("test.windlass.dev/v1", "Bundle", "one", is_at_rest).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m15_a_paused_owner_is_observed_and_not_written() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "paused").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(note("a")), Item::of(deployment("web", Story::Ready))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.ask("one", "windlass.dev/paused-because", "we restore a backup").await?;
    corner.ask("one", "windlass.dev/paused", "true").await?;
    let (reason, message) = corner.until::<Bundle>("one", "Paused", "True").await?;
    assert_eq!(reason, "Paused");
    assert!(message.starts_with("paused because we restore a backup: "), "{message}");
    let ready = condition(&corner.object("Bundle", "one").await?, "Ready");
    assert_eq!(ready["status"], "True", "nobody's pager rings: {ready}");

    // A manual change stays, and so does a deletion; both are observed.
    let mark = corner.mark()?;
    corner.change("ConfigMap", "a", json!({"data": {"a": "by hand"}})).await?;
    corner.nudge("one").await?;
    corner.delete("Deployment", "web").await?;
    let words = "Deployment web: it does not exist and is not created while the owner is paused";
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", words).await?;
    assert_eq!(reason, "Paused");
    assert_eq!(condition(&corner.object("Bundle", "one").await?, "Failed")["status"], "False");
    assert_eq!(corner.object_writes(mark)?, [""; 0]);

    corner
        .change("Bundle", "one", json!({"metadata": {"annotations": {"windlass.dev/paused": null}}}))
        .await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    assert_eq!(corner.object("ConfigMap", "a").await?["data"]["a"], "b");
    assert_eq!(condition(&corner.object("Bundle", "one").await?, "Paused"), Value::Null);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m15_a_new_spec_is_not_called_observed_while_the_owner_is_paused() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "paused-spec").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(note("a"))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.ask("one", "windlass.dev/paused", "true").await?;
    corner.until::<Bundle>("one", "Paused", "True").await?;
    let mut changed = note("a");
    changed["data"]["a"] = "c".into();
    let spec = BundleSpec { items: vec![Item::of(changed)], ..BundleSpec::default() };
    corner.respec("one", &spec).await?;
    let tells = |object: &Value| {
        condition(object, "Paused")["message"]
            .as_str()
            .unwrap_or_default()
            .ends_with("; 1 object differs from the plan")
    };
    let status = corner.until_object("test.windlass.dev/v1", "Bundle", "one", tells).await?["status"].clone();
    assert_eq!(status["observedGeneration"], 1, "{status}");

    // A pause that ends by itself.
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1500);
    corner.ask("one", "windlass.dev/paused", &soon.to_string()).await?;
    corner.until_object("v1", "ConfigMap", "a", |object| object["data"]["a"] == "c").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let is_over = |object: &Value| condition(object, "Paused").is_null();
    corner.until_object("test.windlass.dev/v1", "Bundle", "one", is_over).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m6_owners_whose_requests_hang_do_not_hold_up_a_healthy_one_of_another_namespace() -> Result<()>
{
    const BAD: usize = 40;
    let env = or_not_run!(TestEnv::shared().await);
    let (noisy, quiet) = (Corner::new(env.clone(), "noisy").await?, Corner::new(env, "quiet").await?);
    let proxy = noisy.env.fault_proxy().await?;
    let config = noisy.user.config_through(&proxy.url())?;
    let namespaces = [noisy.namespace.name(), quiet.namespace.name()];
    let controller = PlanController::of(Bundles::default()).digest_key(DigestKey::from_bytes(&[7; 32]));
    let operator = Operator::over(config, &namespaces, controller)?;
    operator.ready().await?;
    // A Secret that may not be read, and a third party's webhook that does not answer.
    let secrets = Match::any().resource("secrets").namespace(noisy.namespace.name());
    let forbidden = proxy.add(Fault::on(secrets).then(Answer::forbidden()));
    let services = Match::verb(RequestVerb::Apply).resource("services").namespace(noisy.namespace.name());
    let hanging = proxy.add(Fault::on(services).then(Action::Hold));
    for number in 0..BAD {
        let name = format!("bad-{number}");
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}]}});
        let (items, secrets) = (vec![Item::of(service)], vec!["password".to_owned()]);
        let spec = BundleSpec { items, secrets, ..BundleSpec::default() };
        noisy.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new(&name, spec)).await?;
    }
    // With two workers, two would hang.
    hanging.wait_for_hits(4).await?;
    quiet.bundle("healthy", vec![Item::of(note("a"))]).await?;
    quiet.until::<Bundle>("healthy", "Ready", "True").await?;
    assert!(forbidden.hits() > 0, "nobody asked for the Secret");

    // Nothing was released so far: the healthy owner did not wait for an answer that a bad one got.
    assert_eq!(noisy.services().await?, [""; 0]);
    forbidden.remove();
    hanging.discard();
    hanging.remove();
    operator.stop().await
}

/// Makes a bundle undecodable, as a CRD does that admits more than the operator knows. Returns its status
/// when that says so.
async fn make_unreadable(corner: &Corner, name: &str) -> Result<Value> {
    corner.change("Bundle", name, json!({"spec": {"number": "hunter2"}})).await?;
    let is_told = |object: &Value| condition(object, "Stalled")["status"] == "True";
    let object = corner.until_object("test.windlass.dev/v1", "Bundle", name, is_told).await?;
    let ready = condition(&object, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("DrawFailed")), "{ready}");
    let message = ready["message"].as_str().unwrap_or_default();
    let words = "the object cannot be read as a Bundle: spec.number is not what this operator's schema says";
    assert!(message.starts_with(words) && !message.contains("hunter2"), "{message}");
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
    Ok(object["status"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_low_an_owner_that_cannot_be_decoded_says_so_in_its_status_and_an_event() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "undecodable").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    corner.bundle("one", notes(&["a"]).items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let status = make_unreadable(&corner, "one").await?;
    assert_eq!(status["completeGeneration"], 1, "{status}");
    eventually("a warning names the field", || async {
        let events = corner.events("one").await.map_err(|error| error.to_string())?;
        let warns = |event: &Value| {
            let note = event["note"].as_str().unwrap_or_default();
            event["type"] == "Warning" && note.contains("spec.number is not") && !note.contains("hunter2")
        };
        let events: Vec<Value> = events.iter().map(|event| json!(event)).collect();
        if events.iter().any(warns) { Ok(()) } else { Err(json!(events).to_string()) }
    })
    .await?;
    corner.object("ConfigMap", "a").await?;

    corner.change("Bundle", "one", json!({"spec": {"number": 7}})).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_low_an_owner_that_cannot_be_decoded_is_deleted_by_its_inventory() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "undecodable-gone").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let spec = BundleSpec { ordered: true, ..notes(&["a"]) };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new("one", spec)).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    make_unreadable(&corner, "one").await?;
    corner.delete("Bundle", "one").await?;
    corner.until_object("test.windlass.dev/v1", "Bundle", "one", Value::is_null).await?;
    corner.gone("ConfigMap", "a").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m14_the_conditions_of_an_owner_are_metrics_until_it_is_gone() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "conditions").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let series = |condition: &str| {
        let (controller, namespace) = ("bundle.test.windlass.dev", corner.namespace.name());
        format!(
            "windlass_owner_condition{{controller=\"{controller}\",namespace=\"{namespace}\",name=\"one\",condition=\"{condition}\"}}"
        )
    };
    let values = || ["Ready", "Failed", "Paused"].map(|condition| operator.metric_value(&series(condition)));
    corner.bundle("one", notes(&["a"]).items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    assert_eq!(values(), [Some(1.0), Some(0.0), Some(0.0)]);

    corner.ask("one", "windlass.dev/paused", "true").await?;
    corner.until::<Bundle>("one", "Paused", "True").await?;
    assert_eq!(values(), [Some(1.0), Some(0.0), Some(1.0)]);

    let broken =
        json!({"metadata": {"annotations": {"windlass.dev/paused": null}}, "spec": {"broken": true}});
    corner.change("Bundle", "one", broken).await?;
    corner.until::<Bundle>("one", "Failed", "True").await?;
    assert_eq!(values(), [Some(0.0), Some(1.0), Some(0.0)]);

    corner.delete("Bundle", "one").await?;
    eventually("the series are removed", || async {
        let values = values();
        if values == [None; 3] { Ok(()) } else { Err(format!("{values:?}")) }
    })
    .await?;
    operator.stop().await
}
