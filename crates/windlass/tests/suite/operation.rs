//! Operation: pause, class, status, events, metrics, and a crash.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass::PlanController;
use windlass_runtime::client::{Client, ClientOptions, Failure};
use windlass_runtime::key::ObjectKey;
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Item, note};
use kit::shop::{Shop, Shops, password, shop};
use kit::{Corner, Operator};

fn bundle(name: &str, notes: &[&str]) -> Bundle {
    let items = notes.iter().map(|name| Item::of(note(name))).collect();
    Bundle::new(name, BundleSpec { items, ..BundleSpec::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_owner_is_left_alone_reports_the_pause_and_continues_afterwards() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "pause").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let bundles = corner.namespace.api::<Bundle>();
    bundles.create(&PostParams::default(), &bundle("one", &["a"])).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let pause = |paused: Value| json!({"metadata": {"annotations": {"windlass.dev/paused": paused}}});
    corner.change("Bundle", "one", pause(json!("true"))).await?;
    let (reason, message) = corner.until::<Bundle>("one", "Paused", "True").await?;
    assert_eq!(reason, "Paused");
    assert!(message.contains("remove the annotation windlass.dev/paused to continue"), "{message}");
    corner.until::<Bundle>("one", "Ready", "True").await?;

    let items = json!([Item::of(note("a")), Item::of(note("b"))]);
    corner.change("Bundle", "one", json!({"spec": {"items": items}})).await?;
    // The status is still about the former spec: the new one is not applied.
    let tells = |name: &'static str| {
        let words =
            format!("ConfigMap {name}: it does not exist and is not created while the owner is paused");
        move |object: &Value| {
            object["status"]["conditions"][0]["message"].as_str().unwrap_or_default().starts_with(&words)
        }
    };
    corner.until_object("test.windlass.dev/v1", "Bundle", "one", tells("b")).await?;
    let (mark, before) = (corner.mark()?, operator.reconciles());
    corner.delete("ConfigMap", "a").await?;
    operator.looked_after(before).await?;
    corner.until_object("test.windlass.dev/v1", "Bundle", "one", tells("a")).await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert_eq!(corner.object_writes(mark)?, [""; 0]);

    corner.change("Bundle", "one", pause(Value::Null)).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "a").await?;
    corner.object("ConfigMap", "b").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_operators_of_different_class_share_a_namespace() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "class").await?;
    let other = corner.namespace.client_for("blue", &Rules::everything()).await?;
    let mark = corner.mark()?;
    let plain = corner.operate(PlanController::of(Bundles::default())).await?;
    let controller = PlanController::of(Bundles::default()).class("blue");
    let blue = Operator::with(other.config(), corner.namespace.name(), controller)?;
    blue.ready().await?;
    let bundles = corner.namespace.api::<Bundle>();
    bundles.create(&PostParams::default(), &bundle("one", &["one"])).await?;
    let mut second = bundle("two", &["two"]);
    second.metadata.annotations = Some([("windlass.dev/class".to_owned(), "blue".to_owned())].into());
    bundles.create(&PostParams::default(), &second).await?;
    for name in ["one", "two"] {
        corner.until::<Bundle>(name, "Ready", "True").await?;
    }
    corner.look_again(&plain, "Bundle", "two").await?;
    corner.look_again(&blue, "Bundle", "one").await?;
    for (user, name) in [(corner.user.name(), "one"), (other.name(), "two")] {
        let writes = corner.env.requests()?.since(mark)?.by_user(user).writes();
        let names: Vec<_> = writes.iter().map(|request| &*request.name).collect();
        assert_eq!(names, [name, name], "an object and a status: {writes}");
    }
    plain.stop().await?;
    blue.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_work_costs_one_status_write_and_no_event() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "quick").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let mark = corner.mark()?;
    let bundles = corner.namespace.api::<Bundle>();
    bundles.create(&PostParams::default(), &bundle("one", &["a", "b", "c"])).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    let mut writes = corner.writes_since(mark)?;
    writes.sort();
    assert_eq!(
        writes,
        ["patch bundles/status one", "patch configmaps a", "patch configmaps b", "patch configmaps c"]
    );
    assert_eq!(corner.requests_since(mark)?.resource("events").count(), 0);
    let count = |kind: &str, result: &str| {
        let labels = format!("controller=\"bundle.test.windlass.dev\",kind=\"{kind}\",result=\"{result}\"");
        operator.metric(&format!("windlass_node_total{{{labels}}}"))
    };
    assert!((count("ConfigMap", "created") - 3.0).abs() < f64::EPSILON, "{}", operator.metrics());
    assert!(count("ConfigMap", "unchanged") >= 3.0);
    let seconds = "windlass_node_seconds_count{controller=\"bundle.test.windlass.dev\",kind=\"ConfigMap\"}";
    assert!(operator.metric(seconds) >= 6.0, "{}", operator.metrics());

    // A repair and a pruned node are counted with their own results.
    corner.change("ConfigMap", "a", json!({"data": {"a": "x"}})).await?;
    eventually("the repair", || async {
        if count("ConfigMap", "applied") > 0.0 { Ok(()) } else { Err(operator.metrics()) }
    })
    .await?;
    let items = json!([Item::of(note("a")), Item::of(note("b"))]);
    corner.change("Bundle", "one", json!({"spec": {"items": items}})).await?;
    corner.gone("ConfigMap", "c").await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert!((count("ConfigMap", "applied") - 1.0).abs() < f64::EPSILON);
    assert!((count("ConfigMap", "deleted") - 1.0).abs() < f64::EPSILON);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_is_recorded_once_and_a_status_is_written_only_when_it_changes() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "told").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until_message::<Shop>("one", "Ready", "False", "Secret password").await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    let transitions = || async {
        let mut events = corner.events_of("one").await.map_err(|error| error.to_string())?;
        events.sort();
        Ok::<_, String>(
            events.into_iter().map(|(kind, reason, _)| format!("{kind} {reason}")).collect::<Vec<_>>(),
        )
    };
    eventually("both transitions are recorded", || async {
        let events = transitions().await?;
        if events == ["Normal InputMissing", "Normal Ready"] { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await?;
    let mark = corner.mark()?;
    for _ in 0..5 {
        corner.look_again(&operator, "Shop", "one").await?;
    }
    let asked = corner.requests_since(mark)?;
    assert!(asked.is_empty(), "nothing has changed: {asked}");
    assert_eq!(transitions().await.unwrap().len(), 2);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeatedly_killed_operator_reaches_the_same_state() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "killed").await?;
    let shops = Shops::default();
    let registrar = shops.registrar.clone();
    let mark = corner.mark()?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    // A request that was cut off by a crash is in the log too, although the server may have dropped it: such
    // requests have no success code, and are sent again.
    let accepted = || -> Result<Vec<String>> {
        let requests = corner.requests_since(mark)?.writes().filter(|request| request.resource != "events");
        let accepted = requests.iter().filter(|request| (200..300).contains(&request.code));
        Ok(accepted
            .map(|request| format!("{} {} {}", request.verb, request.resource, request.name))
            .collect())
    };
    // The number of accepted writes at the start of each operator.
    let mut lives = Vec::new();
    for (kind, start) in
        [("Secret", "one-key"), ("StatefulSet", "one-db"), ("Job", "one-migrate-"), ("Deployment", "one-web")]
    {
        lives.push(accepted()?.len());
        let operator = Operator::start(corner.user.config(), corner.namespace.name(), shops.clone())?;
        eventually(format!("there is a {kind}"), || async {
            let all = corner.of_kind(kind).list(&kube::api::ListParams::default()).await;
            let all = all.map_err(|error| error.to_string())?;
            let found =
                all.iter().any(|one| one.metadata.name.as_deref().is_some_and(|n| n.starts_with(start)));
            if found { Ok(()) } else { Err("not yet".to_owned()) }
        })
        .await?;
        operator.kill().await;
    }
    let key = corner.object("Secret", "one-key").await?;
    lives.push(accepted()?.len());
    let operator = corner.operate(PlanController::of(shops)).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(corner.standing().await?.len(), 11);
    assert_eq!(corner.object("Secret", "one-key").await?["data"], key["data"], "generated once");
    assert_eq!(registrar.shops.lock().len(), 1);
    let writes = accepted()?;
    // An accepted write is never sent again.
    for accepted in lives {
        let (before, after) = writes.split_at(accepted);
        let again: Vec<_> = after.iter().filter(|write| before.contains(write)).collect();
        assert!(again.iter().all(|write| write.contains(" shops")), "{again:?} in {writes:#?} at {accepted}");
    }
    // A request that was cut off by a crash may still have reached the server.
    let sent = corner.writes_since(mark)?;
    assert_eq!(sent.iter().filter(|write| !write.contains(" shops")).collect::<BTreeSet<_>>().len(), 10);
    let mark = corner.mark()?;
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0]);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn users_n19_a_paused_rollout_is_named_in_the_status() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "rollout-pause").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.change("Deployment", "one-web", json!({"spec": {"paused": true}})).await?;
    corner.change("Shop", "one", json!({"spec": {"image": "shop:2"}})).await?;
    let message = "its rollout is paused: `kubectl rollout resume deployment/one-web` continues it";
    corner.until_message::<Shop>("one", "Ready", "False", message).await?;
    corner.change("Deployment", "one-web", json!({"spec": {"paused": null}})).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn users_n19_a_write_into_a_namespace_that_is_being_deleted_has_a_class_of_its_own() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "terminating").await?;
    let maps = corner.namespace.api::<ConfigMap>();
    let held = json!({"metadata": {"name": "held", "finalizers": ["test.windlass.dev/hold"]}});
    maps.create(&PostParams::default(), &serde_json::from_value(held)?).await?;
    let name = corner.namespace.name();
    let namespaces: kube::Api<Namespace> = kube::Api::all(corner.env.client());
    drop(namespaces.delete(name, &DeleteParams::default()).await?);
    let client = Client::new(corner.env.config().clone(), ClientOptions::default())?;
    let key = ObjectKey::namespaced(name, "late");
    let late = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    let error = client.objects::<ConfigMap>().create(&key, &late).await.unwrap_err();
    assert_eq!(*error.failure(), Failure::Terminating, "{error}");
    corner.change("ConfigMap", "held", json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}
