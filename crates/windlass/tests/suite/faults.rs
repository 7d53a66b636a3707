//! Faults of the network and the API server: the result is the same, with a bounded number of writes, and the
//! operator comes to rest.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use serde_json::json;
use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanController, PlanError};
use windlass_testenv::proxy::{Action, Answer, Fault, FaultProxy, Match, RequestVerb};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Item};
use kit::shop::{Registrar, Shop, Shops, password, shop};
use kit::{Corner, Operator};

/// Starts an operator with a proxy between it and the API server.
async fn through(corner: &Corner, proxy: &FaultProxy) -> Result<(Operator, Registrar)> {
    let shops = Shops::default();
    let registrar = shops.registrar.clone();
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(shops))?;
    operator.ready().await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    Ok((operator, registrar))
}

/// Injects faults into writes of all sorts: single applies, three in a row, a status, a finalizer, deletes.
fn hurt(proxy: &FaultProxy, action: impl Into<Action>) {
    let action = action.into();
    let objects = || Match::verb(RequestVerb::Apply).except("shops/status").except("events");
    for fault in [
        Fault::on(Match::verb(RequestVerb::Apply).resource("secrets")).first(),
        Fault::on(objects()).nth(2),
        Fault::on(objects()).after(4).times(3),
        Fault::on(objects()).nth(10),
        Fault::on(Match::verb(RequestVerb::Apply).resource("shops/status")).times(3),
        Fault::on(Match::verb(RequestVerb::Patch).resource("shops")).first(),
        Fault::on(Match::verb(RequestVerb::Delete)).first(),
        Fault::on(Match::verb(RequestVerb::Delete)).after(2).times(3),
    ] {
        proxy.add(fault.then(action.clone()));
    }
}

fn hits(proxy: &FaultProxy) -> usize {
    proxy.seen().iter().filter(|seen| seen.fault.is_some()).count()
}

/// Fails unless the shop matches its spec and nothing is left to do.
async fn at_rest(corner: &Corner, operator: &Operator) -> Result<()> {
    let ids: Vec<_> = corner.standing().await?.into_keys().collect();
    assert_eq!(ids.len(), 11, "{ids:#?}");
    let key = corner.object("Secret", "one-key").await?;
    let key = BASE64_STANDARD.decode(key["data"]["key"].as_str().unwrap_or_default())?;
    assert_eq!(key.len(), 32, "what was generated is still there");
    corner.look_again(operator, "Shop", "one").await?;
    let mark = corner.mark()?;
    corner.look_again(operator, "Shop", "one").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0]);
    Ok(())
}

/// Waits until the tiers of the shop have this image, and the task of the previous image is gone.
async fn changed(corner: &Corner, image: &str) -> Result<()> {
    corner.until::<Shop>("one", "Ready", "True").await?;
    eventually("the new image is everywhere, and one task", || async {
        let all = corner.everything().await.map_err(|error| error.to_string())?;
        let tasks: Vec<_> = all.keys().filter(|id| id.starts_with("Job ")).collect();
        let images: Vec<_> = ["StatefulSet one-db", "Deployment one-web"]
            .map(|id| all[id]["spec"]["template"]["spec"]["containers"][0]["image"].clone())
            .to_vec();
        if tasks.len() == 1 && images.iter().all(|found| found == image) {
            return Ok(());
        }
        Err(format!("{tasks:?} {images:?}"))
    })
    .await?;
    Ok(())
}

/// Creates, changes and deletes a shop while its writes fail in this way.
async fn survives(hint: &str, action: impl Into<Action> + Clone) -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), hint).await?;
    let proxy = corner.env.fault_proxy().await?;
    let (operator, registrar) = through(&corner, &proxy).await?;
    let mark = corner.mark()?;
    let mut hurt_so_far = 0;
    let mut most = 0;
    // The writes that a phase needs without faults: objects, and a status for each of their states.
    let mut bounded = |needed: usize| -> Result<()> {
        let hits = hits(&proxy);
        assert!(hits >= hurt_so_far + 3, "only {} hits: this was no test", hits - hurt_so_far);
        hurt_so_far = hits;
        most += needed;
        let writes = corner.writes_since(mark)?;
        // A fault costs the repeated write, a status that reports it and one that clears it.
        assert!(writes.len() <= most + 4 * hits, "{hits} faults: {writes:#?}");
        Ok(())
    };

    hurt(&proxy, action.clone());
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    at_rest(&corner, &operator).await?;
    bounded(20)?;
    let key = corner.object("Secret", "one-key").await?;

    proxy.clear();
    hurt(&proxy, action.clone());
    corner.change("Shop", "one", json!({"spec": {"image": "shop:2"}})).await?;
    changed(&corner, "shop:2").await?;
    at_rest(&corner, &operator).await?;
    bounded(15)?;
    assert_eq!(corner.object("Secret", "one-key").await?["data"], key["data"]);

    proxy.clear();
    hurt(&proxy, action);
    corner.delete("Shop", "one").await?;
    corner.gone("Shop", "one").await?;
    assert!(registrar.shops.lock().is_empty());
    let left: Vec<_> = corner.standing().await?.into_keys().collect();
    assert_eq!(left, ["PersistentVolumeClaim one-data", "Secret password"]);
    bounded(20)?;
    proxy.clear();
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_conflicts() -> Result<()> {
    survives("conflict", Answer::conflict()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_throttling() -> Result<()> {
    survives("throttled", Answer::too_many_requests(Duration::from_secs(1))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_internal_errors() -> Result<()> {
    survives("internal", Answer::internal_error()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_an_unreachable_server() -> Result<()> {
    survives("unavailable", Answer::unavailable()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_lost_requests() -> Result<()> {
    survives("drop-before", Action::DropBefore).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_lost_responses() -> Result<()> {
    survives("drop-after", Action::DropAfter).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_object_is_kept_if_the_response_to_its_creation_is_lost() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "generated").await?;
    let proxy = corner.env.fault_proxy().await?;
    let (operator, _) = through(&corner, &proxy).await?;
    // The watch is frozen, so that only the repeated creation can find the object.
    let secrets = Match::watches().resource("secrets");
    let frozen = proxy.freeze_watches(&secrets);
    let lost = proxy
        .add(Fault::on(Match::verb(RequestVerb::Apply).resource("secrets")).first().then(Action::DropAfter));
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    lost.wait_for_hits(1).await?;
    proxy
        .wait_for_seen("the repeated creation", |seen| {
            seen.request.name.as_deref() == Some("one-key") && seen.server == Some(409)
        })
        .await?;
    drop(frozen);
    corner.until::<Shop>("one", "Ready", "True").await?;
    at_rest(&corner, &operator).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_conflict_stops_neither_a_status_nor_a_deletion() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "single").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let controller = PlanController::of(Bundles::default());
    let operator = Operator::with(config, corner.namespace.name(), controller)?;
    operator.ready().await?;
    for wanted in
        [Match::verb(RequestVerb::Apply).resource("bundles/status"), Match::verb(RequestVerb::Delete)]
    {
        proxy.add(Fault::on(wanted).first().then(Answer::conflict()));
    }
    let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let spec = BundleSpec { items: vec![Item::of(note)], ordered: true, ..BundleSpec::default() };
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &Bundle::new("one", spec)).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    corner.delete("Bundle", "one").await?;
    corner.gone("Bundle", "one").await?;
    corner.gone("ConfigMap", "a").await?;
    assert_eq!(hits(&proxy), 2);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_lost_watches() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "watches").await?;
    let proxy = corner.env.fault_proxy().await?;
    let (operator, _) = through(&corner, &proxy).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    proxy.wait_for_request(&Match::verb(RequestVerb::Apply).resource("statefulsets")).await?;
    assert!(proxy.cut_watches(&Match::watches()) > 5, "in the middle of it, all watches break");
    corner.until::<Shop>("one", "Ready", "True").await?;
    at_rest(&corner, &operator).await?;

    // Events during a freeze of all watches can only be found by a new list: a change, damage, and a loss.
    let frozen = proxy.freeze_watches(&Match::watches());
    corner.change("Shop", "one", json!({"spec": {"image": "shop:2"}})).await?;
    corner.change("ConfigMap", "one-config", json!({"data": {"image": "wrong"}})).await?;
    corner.delete("Service", "one-web").await?;
    proxy.cut_watches(&Match::watches());
    drop(frozen);
    changed(&corner, "shop:2").await?;
    corner.object("Service", "one-web").await?;
    at_rest(&corner, &operator).await?;
    assert_eq!(corner.object("ConfigMap", "one-config").await?["data"]["image"], "shop:2");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_survives_a_restart_of_the_api_server() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let corner = Corner::new((*env).clone(), "restart").await?;
    let shops = Shops::default();
    let operator = corner.operate(PlanController::of(shops)).await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    eventually("it has begun", || async {
        corner.object("Service", "one-db").await.map_err(|error| error.to_string())
    })
    .await?;
    env.restart_api_server().await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    at_rest(&corner, &operator).await?;
    operator.stop().await
}

/// A blueprint that makes a ConfigMap from the existence of a Secret.
struct Watchful;

impl Controls for Watchful {
    type Owner = Bundle;
    const NAME: &'static str = "watchful.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>().requires::<Secret>();
    }
}

impl Blueprint for Watchful {
    fn draw(&self, _: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let seen = needs.observed::<Secret>("there")?.is_some();
        let made = json!({"metadata": {"name": "made"}, "data": {"seen": seen.to_string()}});
        plan.add(serde_json::from_value::<ConfigMap>(made)?);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_is_not_taken_for_missing() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "unread").await?;
    let proxy = corner.env.fault_proxy().await?;
    let there = json!({"metadata": {"name": "there"}});
    corner.namespace.api::<Secret>().create(&PostParams::default(), &serde_json::from_value(there)?).await?;
    let unread = Match::verbs([RequestVerb::List, RequestVerb::Watch]).resource("secrets");
    proxy.add(Fault::on(unread).then(Answer::new(500, "InternalError", "etcd has a cold")));
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), PlanController::of(Watchful))?;
    operator.ready().await?;
    let mark = corner.mark()?;
    let one = Bundle::new("one", BundleSpec::default());
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &one).await?;
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", "Secret there").await?;
    assert_eq!(reason, "Waiting");
    proxy.clear();
    corner.until::<Bundle>("one", "Ready", "True").await?;
    assert_eq!(corner.object("ConfigMap", "made").await?["data"]["seen"], "true");
    let writes = corner.writes_since(mark)?;
    let made = writes.iter().filter(|write| write.contains("configmaps made")).count();
    assert_eq!(made, 1, "it was never made as if nothing were there: {writes:#?}");
    operator.stop().await
}
