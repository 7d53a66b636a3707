//! Writes that the server refuses and objects that others keep changing are reported once, are not retried
//! again and again, and recover at the next change.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanController, PlanError};
use windlass_testenv::{TestEnv, eventually, or_not_run};

use kit::Corner;
use kit::bundle::{Bundle, BundleSpec, Bundles, Item};

fn note(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}})
}

fn service(name: &str, port: i32) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": port}]}})
}

async fn create(corner: &Corner, items: Vec<Item>) -> Result<()> {
    let spec = BundleSpec { items, ..BundleSpec::default() };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new("one", spec)).await?;
    Ok(())
}

async fn change(corner: &Corner, items: Vec<Item>) -> Result<()> {
    corner.change("Bundle", "one", json!({"spec": {"items": items}})).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_object_is_refused_once_and_mended_by_a_change() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "invalid").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let mark = corner.mark()?;
    let items = |port| {
        vec![
            Item::of(note("beside", "b")),
            Item::of(service("bad", port)),
            Item::of(note("behind", "b")).after("Service bad"),
        ]
    };
    create(&corner, items(99_999)).await?;
    let (reason, message) =
        corner.until_message::<Bundle>("one", "Ready", "False", "spec.ports[0].port").await?;
    assert_eq!(reason, "Invalid");
    assert!(message.starts_with("Service bad: ") && message.contains("99999"), "{message}");
    corner.until::<Bundle>("one", "Failed", "True").await?;
    corner.object("ConfigMap", "beside").await?;
    assert!(corner.object("ConfigMap", "behind").await.is_err(), "it comes after what failed");

    // A real window of 20 s, because backoff depends on time: the owner is reconciled all the while, and one
    // of its objects is damaged each time.
    let (began, mut looks) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(20) {
        corner.change("ConfigMap", "beside", json!({"data": {"other": looks.to_string()}})).await?;
        corner.look_again(&operator, "Bundle", "one").await?;
        looks += 1;
    }
    assert!(looks > 20, "only {looks} looks: this was no test");
    let tried = corner.requests_since(mark)?.resource("services").writes();
    assert_eq!(tried.count(), 1, "after {looks} looks: {tried}");

    change(&corner, items(80)).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.object("ConfigMap", "behind").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_content_with_three_internal_errors_is_not_sent_again() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "internal").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    let mark = corner.mark()?;
    let mut wrong = note("a", "b");
    wrong["nonsense"] = json!({"x": 1});
    create(&corner, vec![Item::of(wrong)]).await?;
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", "nonsense").await?;
    assert_eq!(reason, "Unavailable", "{message}");
    corner.until::<Bundle>("one", "Progressing", "False").await?;
    for _ in 0..10 {
        corner.look_again(&operator, "Bundle", "one").await?;
    }
    let tried = corner.requests_since(mark)?.resource("configmaps").writes();
    // The client of the kit tries twice for each of the three attempts.
    assert_eq!((tried.count(), tried.code(500).count()), (6, 6), "{tried}");
    change(&corner, vec![Item::of(note("a", "b"))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_cannot_be_drawn_is_reported_and_costs_no_writes() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "draw").await?;
    let operator = corner.operate(PlanController::of(Bundles::default())).await?;
    create(&corner, vec![Item::of(note("a", "b"))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.change("Bundle", "one", json!({"spec": {"broken": true}})).await?;
    let (reason, message) = corner.until::<Bundle>("one", "Ready", "False").await?;
    assert_eq!((&*reason, &*message), ("DrawFailed", "spec.broken is true: make it false"));
    let (reason, _) = corner.until::<Bundle>("one", "Failed", "True").await?;
    assert_eq!(reason, "DrawFailed");
    let mark = corner.mark()?;
    for _ in 0..5 {
        corner.look_again(&operator, "Bundle", "one").await?;
    }
    let asked = corner.requests_since(mark)?.filter(|request| request.resource != "events");
    assert!(asked.is_empty(), "{asked}");
    corner.object("ConfigMap", "a").await?;
    corner.change("Bundle", "one", json!({"spec": {"broken": false}})).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await
}

/// A blueprint that does not declare a kind that it plans, or that it asks for.
struct Forgetful;

impl Controls for Forgetful {
    type Owner = Bundle;
    const NAME: &'static str = "forgetful.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>();
    }
}

impl Blueprint for Forgetful {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        for name in &bundle.spec.secrets {
            needs.require::<Secret>(name);
        }
        plan.add::<Secret>(serde_json::from_value(json!({"metadata": {"name": "a"}}))?);
        plan.add::<ConfigMap>(serde_json::from_value(note("b", "c"))?);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undeclared_kind_is_named_with_the_remedy() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "undeclared").await?;
    let operator = corner.operate(PlanController::of(Forgetful)).await?;
    create(&corner, Vec::new()).await?;
    let (reason, message) = corner.until::<Bundle>("one", "Ready", "False").await?;
    assert_eq!(reason, "DrawFailed");
    assert!(message.contains("add `kinds.owns::<Secret>()` to Controls::kinds"), "{message}");
    corner.object("ConfigMap", "b").await?;
    corner.change("Bundle", "one", json!({"spec": {"secrets": ["x"]}})).await?;
    let message = "add `kinds.requires::<Secret>()` to Controls::kinds";
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", message).await?;
    assert_eq!(reason, "DrawFailed");
    operator.stop().await
}

/// Another writer that sets `a` to `theirs` again and again.
async fn insist(corner: &Corner) -> Result<()> {
    loop {
        eventually("it is as we want it", || async {
            match corner.object("ConfigMap", "a").await {
                Ok(map) if map["data"]["a"] != "theirs" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        corner.change("ConfigMap", "a", json!({"data": {"a": "theirs"}})).await?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_is_recorded_once_and_the_operator_stops_writing() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "fight").await?;
    let operator = corner.operate(PlanController::of(Bundles::default()).writes(3)).await?;
    let mark = corner.mark()?;
    create(&corner, vec![Item::of(note("a", "ours"))]).await?;
    let fought = corner.until_message::<Bundle>("one", "Ready", "False", "somebody else writes it too");
    let (reason, message) = tokio::select! {
        fought = fought => fought?,
        insisted = insist(&corner) => panic!("{insisted:?}"),
    };
    assert_eq!(reason, "Fighting");
    assert!(message.starts_with("ConfigMap a: it has been written 3 times"), "{message}");
    let written = |mark| anyhow::Ok(corner.requests_since(mark)?.resource("configmaps").writes().count());
    assert_eq!(written(mark)?, 3);
    eventually("the fight is recorded as an event", || async {
        let events = corner.events_of("one").await.map_err(|error| error.to_string())?;
        let fights = events.iter().filter(|(kind, reason, _)| kind == "Warning" && reason == "Fighting");
        if fights.count() > 0 { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await?;

    // The other writer continues; the operator does not.
    let later = corner.mark()?;
    for round in 0..5 {
        let before = operator.reconciles();
        corner.change("ConfigMap", "a", json!({"data": {"a": format!("theirs {round}")}})).await?;
        operator.looked_after(before).await?;
    }
    assert_eq!(corner.writes_since(later)?, [""; 0], "neither the object nor the status");
    let fights = "windlass_node_fights_total{controller=\"bundle.test.windlass.dev\",kind=\"ConfigMap\"}";
    assert!((operator.metric(fights) - 1.0).abs() < f64::EPSILON, "{}", operator.metric(fights));

    change(&corner, vec![Item::of(note("a", "ours again"))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    assert_eq!(corner.object("ConfigMap", "a").await?["data"]["a"], "ours again");
    operator.stop().await
}
