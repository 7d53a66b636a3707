//! The end: of an owner, in reverse order; of a node that has left the plan; and what must not go with them.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass::PlanController;
use windlass_testenv::{TestEnv, or_not_run};

use kit::Corner;
use kit::bundle::{Bundle, BundleSpec, Bundles, Item};
use kit::shop::{Shop, Shops, password, shop};

/// A shop named `one` that is ready.
async fn open_shop(corner: &Corner) -> Result<()> {
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    Ok(())
}

fn deletes(writes: Vec<String>) -> Vec<String> {
    writes.iter().filter_map(|write| write.strip_prefix("delete ").map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_goes_in_reverse_order_and_a_stuck_step_says_so() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "reverse").await?;
    let shops = Shops::default();
    let registrar = shops.registrar.clone();
    let operator = corner.operate(PlanController::of(shops)).await?;
    open_shop(&corner).await?;
    assert_eq!(registrar.shops.lock().len(), 1);
    let claim = corner.object("PersistentVolumeClaim", "one-data").await?;

    *registrar.refuses.lock() = Some("the registry office is closed".into());
    let mark = corner.mark()?;
    corner.delete("Shop", "one").await?;
    let said = "deleting, waiting for registration: the registry office is closed";
    let (reason, _) = corner.until_said::<Shop>("one", "Ready", "False", said).await?;
    assert_eq!(reason, "Deleting");
    corner.look_again(&operator, "Shop", "one").await?;
    let mut early = deletes(corner.writes_since(mark)?);
    early.sort();
    assert_eq!(early, ["ingresses one-web", "services one-web"], "what the step depends on stays");

    *registrar.refuses.lock() = None;
    corner.gone("Shop", "one").await?;
    assert!(registrar.shops.lock().is_empty());
    let order = deletes(corner.writes_since(mark)?);
    let place = |start: &str| {
        let found = order.iter().position(|delete| delete.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {order:#?}"))
    };
    for (first, then) in [
        ("ingresses one-web", "services one-web"),
        ("deployments one-web", "jobs one-migrate-"),
        ("deployments one-web", "configmaps one-config"),
        ("jobs one-migrate-", "statefulsets one-db"),
        ("jobs one-migrate-", "services one-db"),
        ("statefulsets one-db", "serviceaccounts one-runner"),
        ("statefulsets one-db", "secrets one-key"),
    ] {
        assert!(place(first) < place(then), "{first} before {then}: {order:#?}");
    }
    assert_eq!(order.len(), 9, "each once, but the data never: {order:#?}");

    // The next owner of that name has the data of the one before.
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    let taken_back = corner.object("PersistentVolumeClaim", "one-data").await?;
    assert_eq!(taken_back["metadata"]["uid"], claim["metadata"]["uid"]);
    assert_eq!(taken_back["spec"], claim["spec"]);
    let owner = corner.object("Shop", "one").await?;
    assert_eq!(taken_back["metadata"]["labels"]["windlass.dev/owner"], owner["metadata"]["uid"]);
    assert_eq!(taken_back["metadata"]["ownerReferences"], Value::Null);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leaves_the_plan_is_pruned_and_nothing_else_is_touched() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "pruned").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    open_shop(&corner).await?;
    let (mark, mut standing) = (corner.mark()?, corner.standing().await?);
    corner.change("Shop", "one", json!({"spec": {"host": null}})).await?;
    corner.gone("Ingress", "one-web").await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Shop", "one").await?;
    let writes = corner.writes_since(mark)?;
    let of_plan: Vec<_> = writes.iter().filter(|write| !write.contains(" shops")).collect();
    assert_eq!(of_plan, ["delete ingresses one-web"], "{writes:#?}");
    standing.remove("Ingress one-web");
    assert_eq!(corner.standing().await?, standing);
    operator.stop().await
}

fn note(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

async fn bundle(corner: &Corner, name: &str, items: Vec<Item>) -> Result<()> {
    let spec = BundleSpec { items, ..BundleSpec::default() };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new(name, spec)).await?;
    corner.until::<Bundle>(name, "Ready", "True").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_that_are_pruned_dependents_go_first() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "chain").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let items = vec![
        Item::of(note("stays")),
        Item::of(note("a")),
        Item::of(note("b")).after("ConfigMap a"),
        Item::of(note("c")).after("ConfigMap b"),
    ];
    bundle(&corner, "one", items.clone()).await?;
    // Somebody holds the last one: what it depends on must wait for it.
    let held = json!({"metadata": {"finalizers": ["test.windlass.dev/hold"]}});
    corner.change("ConfigMap", "c", held).await?;
    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"items": [items[0]]}})).await?;
    windlass_testenv::eventually("the last of the chain is being deleted", || async {
        let last = corner.object("ConfigMap", "c").await.map_err(|error| error.to_string())?;
        let meta = &last["metadata"];
        if meta["deletionTimestamp"].is_null() { Err(meta.to_string()) } else { Ok(()) }
    })
    .await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert_eq!(deletes(corner.writes_since(mark)?), ["configmaps c"]);
    corner.change("ConfigMap", "c", json!({"metadata": {"finalizers": null}})).await?;
    corner.gone("ConfigMap", "a").await?;
    assert_eq!(deletes(corner.writes_since(mark)?), ["configmaps c", "configmaps b", "configmaps a"]);
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "stays").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_others_stays_whatever_its_labels_say() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "foreign").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    bundle(&corner, "one", vec![Item::of(note("a")), Item::of(note("b"))]).await?;
    corner.change("Bundle", "one", json!({"spec": {"ordered": true}})).await?;
    let owner = corner.object("Bundle", "one").await?;
    let labels = json!({"windlass.dev/controller": "bundle.test.windlass.dev", "windlass.dev/owner": owner["metadata"]["uid"]});
    let keeper = corner.namespace.api::<Secret>().create(&PostParams::default(), &password("x")).await?;
    let reference = json!([{"apiVersion": "v1", "kind": "Secret", "name": "password", "uid": keeper.metadata.uid, "controller": true}]);
    // A stranger; somebody's copy of one of ours, labels and all; and one of ours that another controller has.
    let before = operator.reconciles();
    for metadata in [
        json!({"name": "stranger"}),
        json!({"name": "copy", "labels": labels}),
        json!({"name": "theirs", "labels": labels, "ownerReferences": reference}),
    ] {
        let map: ConfigMap = serde_json::from_value(json!({"metadata": metadata}))?;
        corner.namespace.api::<ConfigMap>().create(&PostParams::default(), &map).await?;
    }
    operator.looked_after(before).await?;
    let mark = corner.mark()?;
    corner.change("Bundle", "one", json!({"spec": {"items": [Item::of(note("a"))]}})).await?;
    corner.gone("ConfigMap", "b").await?;
    corner.look_again(&operator, "Bundle", "one").await?;
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    assert_eq!(deletes(corner.writes_since(mark)?), ["configmaps b", "configmaps a"]);
    for name in ["stranger", "copy", "theirs"] {
        let map = corner.object("ConfigMap", name).await?;
        assert_eq!(map["metadata"]["deletionTimestamp"], Value::Null, "{map:#}");
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_somebody_holds_is_named_with_who_holds_it() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "held").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    open_shop(&corner).await?;
    let held = json!({"metadata": {"finalizers": ["test.windlass.dev/hold"]}});
    corner.change("Service", "one-web", held).await?;
    corner.delete("Shop", "one").await?;
    let said = "Service one-web: it is being deleted, held by test.windlass.dev/hold";
    let (reason, _) = corner.until_said::<Shop>("one", "Ready", "False", said).await?;
    assert_eq!(reason, "Deleting");
    corner.change("Service", "one-web", json!({"metadata": {"finalizers": null}})).await?;
    corner.gone("Shop", "one").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_order_does_not_matter_is_left_to_the_garbage_collector() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "collected").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    bundle(&corner, "one", vec![Item::of(note("a")), Item::of(note("b"))]).await?;
    let owner = corner.object("Bundle", "one").await?;
    assert_eq!(owner["metadata"]["finalizers"], Value::Null);
    let mark = corner.mark()?;
    corner.delete("Bundle", "one").await?;
    corner.gone("ConfigMap", "a").await?;
    corner.gone("ConfigMap", "b").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0]);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_pause_nor_a_missing_input_keeps_an_owner_from_going() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "paused-end").await?;
    let shops = Shops::default();
    let registrar = shops.registrar.clone();
    let operator = corner.operate(PlanController::of(shops)).await?;
    open_shop(&corner).await?;
    let pause = json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}});
    corner.change("Shop", "one", pause).await?;
    corner.until_said::<Shop>("one", "Ready", "False", "paused").await?;
    corner.delete("Secret", "password").await?;
    corner.delete("Shop", "one").await?;
    corner.gone("Shop", "one").await?;
    assert!(registrar.shops.lock().is_empty(), "what was done outside is undone");
    assert_eq!(corner.standing().await?.keys().collect::<Vec<_>>(), ["PersistentVolumeClaim one-data"]);
    operator.stop().await
}
