//! Directors on a real control plane: pods are simulated, and the store is a stand-in inside of the test.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use windlass::PlanController;
use windlass_testenv::world::World;
use windlass_testenv::{TestEnv, eventually, or_not_run};

use super::kit::Corner;
use super::kit::cell::{Call, Cell, CellDirector, CellSpec, LABEL, Store};

fn director(store: &Arc<Store>) -> PlanController<CellDirector> {
    PlanController::directed_by(CellDirector { store: Arc::clone(store) })
}

async fn create(corner: &Corner, spec: CellSpec) -> Result<()> {
    let cells: Api<Cell> = corner.namespace.api();
    cells.create(&PostParams::default(), &Cell::new("one", spec)).await?;
    Ok(())
}

fn spec(members: i32) -> CellSpec {
    CellSpec { members, version: "1".into(), broken: false }
}

async fn change(corner: &World, patch: Value) -> Result<()> {
    corner.change::<Cell>("one", patch).await?;
    Ok(())
}

async fn pods(corner: &Corner) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = corner.namespace.api();
    Ok(pods.list(&ListParams::default().labels(&format!("{LABEL}=one"))).await?.items)
}

/// Waits until the store has been observed more often than this.
async fn observed_after(store: &Store, observed: usize) -> Result<()> {
    eventually("another observation", async || {
        let now = store.observations.load(Ordering::SeqCst);
        if now > observed { Ok(()) } else { Err(format!("{now} observations")) }
    })
    .await?;
    Ok(())
}

fn replicas(set: &StatefulSet) -> Option<i32> {
    set.spec.as_ref()?.replicas
}

fn is_pod_deletion(write: &str) -> bool {
    write.starts_with("delete pods")
}

#[tokio::test(flavor = "multi_thread")]
async fn members_join_leave_and_are_replaced_in_the_order_that_decisions_demand() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(3)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    assert_eq!(store.members.lock().len(), 3);

    change(&corner, json!({"spec": {"members": 2}})).await?;
    corner.see::<StatefulSet>("one", "two replicas", |set| replicas(set) == Some(2)).await?;
    assert_eq!(store.calls.lock().last(), Some(&Call::Leave("one-2".into())), "it had left before");
    corner.until::<Cell>("one", "Ready", "True").await?;

    let before = pods(&corner).await?;
    let mark = corner.mark()?;
    change(&corner, json!({"spec": {"version": "2"}})).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    let after = pods(&corner).await?;
    let uid = |pods: &[Pod]| pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect::<Vec<_>>();
    assert!(uid(&before).iter().all(|old| !uid(&after).contains(old)), "every pod is a new one");
    let deletions = corner.writes_since(mark)?.into_iter().filter(|write| is_pod_deletion(write)).count();
    assert_eq!(deletions, 2, "each pod was deleted once");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converged_director_writes_nothing_and_a_restart_only_observes() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell-rest").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(2)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    // The decisions of the status follow a moment later.
    let is_settled = |cell: &Cell| cell.status.as_ref().is_some_and(|status| status.decisions.is_empty());
    corner.see::<Cell>("one", "no decision is left to show", is_settled).await?;
    operator.stop().await?;

    let mark = corner.mark()?;
    let observed = store.observations.load(Ordering::SeqCst);
    let operator = corner.operate(director(&store)).await?;
    observed_after(&store, observed).await?;
    // One reconcile before the first observation, and one after it.
    operator.looked_after(1.0).await?;
    assert_eq!(corner.writes_since(mark)?, Vec::<String>::new());
    change(&corner, json!({"spec": {"members": 3}})).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    let writes = corner.writes_since(mark)?;
    assert!(writes.iter().all(|write| !is_pod_deletion(write)), "{writes:?}");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_waits_for_its_object_to_be_applied_and_for_nothing_else() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell-effect").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(2)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    let before = pods(&corner).await?;
    // A Secret that the server refuses stays beside the set, which is not ready while pods are replaced.
    change(&corner, json!({"spec": {"version": "2", "broken": true}})).await?;
    eventually("every pod is replaced", async || {
        let now = pods(&corner).await.map_err(|error| error.to_string())?;
        let is_new = |pod: &Pod| before.iter().all(|old| old.metadata.uid != pod.metadata.uid);
        let replaced = now.len() == 2 && now.iter().all(is_new);
        if replaced { Ok(()) } else { Err(format!("{} pods", now.len())) }
    })
    .await?;
    let (reason, _) = corner.until_message::<Cell>("one", "Ready", "False", "one-broken").await?;
    assert_eq!(reason, "Invalid");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_shrinks_while_the_software_is_silent_and_the_status_names_the_rule() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell-silent").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(3)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    store.silent.store(true, Ordering::SeqCst);
    change(&corner, json!({"spec": {"members": 1}})).await?;
    let names_the_rule = |cell: &Cell| {
        let decisions = cell.status.as_ref().map(|status| &status.decisions[..]).unwrap_or_default();
        decisions.iter().any(|decision| {
            decision.actor == "join" && decision.held.iter().any(|held| held.rule == "known members")
        })
    };
    corner.see::<Cell>("one", "the status names the rule", names_the_rule).await?;
    assert_eq!(replicas(&corner.get("one").await?), Some(3));
    store.silent.store(false, Ordering::SeqCst);
    corner.until::<Cell>("one", "Ready", "True").await?;
    let leaves = [Call::Leave("one-2".into()), Call::Leave("one-1".into())];
    assert_eq!(store.calls.lock()[3..], leaves, "the last member leaves first, one after the other");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_spec_is_reported_with_its_remedy_and_changes_nothing() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell-refused").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(2)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    change(&corner, json!({"spec": {"members": 0}})).await?;
    let message = "actor grow: a cell has at least one member: set spec.members to 1 or more";
    let (reason, _) = corner.until_message::<Cell>("one", "Ready", "False", message).await?;
    assert_eq!(reason, "Refused");
    assert_eq!(store.members.lock().len(), 2);
    change(&corner, json!({"spec": {"members": 2}})).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_owner_is_observed_and_gets_no_effect() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell-paused").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(3)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    change(&corner, json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}})).await?;
    corner.until::<Cell>("one", "Paused", "True").await?;
    let (calls, observed) = (store.calls.lock().len(), store.observations.load(Ordering::SeqCst));
    change(&corner, json!({"spec": {"members": 2}})).await?;
    observed_after(&store, observed).await?;
    corner.until_message::<Cell>("one", "Paused", "True", "paused").await?;
    assert_eq!(store.calls.lock().len(), calls);
    change(&corner, json!({"metadata": {"annotations": {"windlass.dev/paused": null}}})).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    assert_eq!(store.calls.lock().last(), Some(&Call::Leave("one-2".into())));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_needs_no_observation() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "cell-deleted").await?;
    let store = Arc::new(Store::default());
    let operator = corner.operate(director(&store)).await?;
    create(&corner, spec(2)).await?;
    corner.until::<Cell>("one", "Ready", "True").await?;
    store.silent.store(true, Ordering::SeqCst);
    let calls = store.calls.lock().len();
    World::delete::<Cell>(&corner, "one").await?;
    World::gone::<StatefulSet>(&corner, "one").await?;
    assert_eq!(store.calls.lock().len(), calls, "effects are not undone");
    operator.stop().await
}
