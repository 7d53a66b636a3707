//! Objects of others, and errors.

use std::time::Duration;

use anyhow::Result;
use kube::api::DeleteParams;
use serde_json::json;
use windlass_operator::Settings;
use windlass_testenv::proxy::{Action, Answer, Fault, Match, RequestVerb};
use windlass_testenv::{TestEnv, eventually, or_not_run, within};

use crate::world::{World, image, spec, uid};

/// The original tries again and again, with backoff. Here the name's next change is waited for, and then it
/// works at once.
#[tokio::test]
async fn f08_a_foreign_deployment_is_left_alone_and_said_so_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f08").await?;
    let foreign = world.foreign("d", json!([])).await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 3)).await?;

    let event = world.event("web", "ErrResourceExists").await?;
    let note = "Resource \"d\" already exists and is not managed by Foo";
    assert_eq!((event.type_.as_deref(), event.note.as_deref()), (Some("Warning"), Some(note)));
    world.meddle("d", json!({"metadata": {"labels": {"busy": "yes"}}})).await?;
    world
        .deployment("d", "rolled out", |made| made.status.as_ref().unwrap().available_replicas == Some(1))
        .await?;
    operator.idle_after(1).await?;
    assert_eq!(operator.metric("workqueue_retries_total"), 0, "no storm");
    assert_eq!(operator.metric("controller_runtime_reconcile_total"), 1, "nor one that its status causes");
    let writes = world.requests(world.begun())?.writes();
    assert_eq!(writes.count(), writes.resource("events").count(), "{writes}");
    assert_eq!((image(&world.deployments.get("d").await?), writes.count()), (Some("other:1"), 1));

    world.deployments.delete("d", &DeleteParams::default()).await?;
    world
        .deployment("d", "ours", |made| uid(made) != uid(&foreign) && image(made) == Some("nginx:latest"))
        .await?;
    world.event("web", "Synced").await?;
    world.end(operator).await
}

/// Between our look and our write somebody else takes the name. The server refuses the write: it asks for a
/// Deployment that is not there yet.
#[tokio::test]
async fn f08_a_foreign_deployment_that_comes_in_between_is_not_taken_over() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f08-race").await?;
    let proxy = world.env.fault_proxy().await?;
    let held = proxy
        .add(Fault::on(Match::verb(RequestVerb::Apply).resource("deployments")).first().then(Action::Hold));
    let operator = world.operator_with(world.user.config_through(&proxy.url())?).await?;
    world.create("web", spec("d", 3)).await?;
    held.wait_for_hits(1).await?;
    let foreign = world.foreign("d", json!([])).await?;
    held.release();
    world.event("web", "ErrResourceExists").await?;
    let found = world.deployments.get("d").await?;
    assert_eq!((uid(&found), image(&found)), (uid(&foreign), Some("other:1")));
    assert_eq!(found.metadata.owner_references, None);
    world.end(operator).await
}

#[tokio::test]
async fn f09_a_deployment_of_another_foo_is_foreign_until_it_goes() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f09").await?;
    let operator = world.operator().await?;
    let first = world.create("first", spec("d", 1)).await?;
    let made = world.deployment("d", "the first one's", |_| true).await?;
    let second = world.create("second", spec("d", 2)).await?;
    world.event("second", "ErrResourceExists").await?;
    let owner = |made: &k8s_openapi::api::apps::v1::Deployment| {
        made.metadata.owner_references.as_ref().unwrap()[0].uid.clone()
    };
    assert_eq!(Some(owner(&world.deployments.get("d").await?)), first.metadata.uid);

    world.foos.delete("first", &DeleteParams::default()).await?;
    // The garbage collector looks for new kinds every 30 s, and until then tries again to find the owner,
    // less and less often: on a new control plane it may take more than a minute.
    let next = within(Duration::from_mins(4), "the second one's Deployment", || async {
        let found = world.deployments.get_opt("d").await.map_err(|error| error.to_string())?;
        found.filter(|next| uid(next) != uid(&made)).ok_or_else(|| "it is not there".to_owned())
    })
    .await?;
    assert_eq!(Some(owner(&next)), second.metadata.uid);
    world.end(operator).await
}

#[tokio::test]
async fn f13_a_deleted_foo_takes_its_deployment_along_without_our_help() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f13").await?;
    // Pods would take their time to go.
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 1)).await?;
    let foo = world.available("web", 0).await?;
    assert_eq!(foo.metadata.finalizers, None);
    let mark = world.mark()?;
    world.foos.delete("web", &DeleteParams::foreground()).await?;
    world.no_deployment("d").await?;
    operator.idle_after(1).await?;
    let writes = world.requests(mark)?.writes().filter(|write| write.resource != "events");
    assert!(writes.is_empty(), "{writes}");
    world.end(operator).await
}

/// The original looks at the kind's name only: a `Foo` of any group would do.
#[tokio::test]
async fn f17_a_foo_of_another_group_is_no_owner() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f17").await?;
    let owner = |api_version: &str| {
        json!([{"apiVersion": api_version, "kind": "Foo", "name": "web", "uid": "00000000-0000-4000-8000-000000000000",
            "controller": true}])
    };
    world.foreign("theirs", owner("example.com/v1")).await?;
    let operator = world.operator().await?;
    // Everything that was there at the start has been sent to the queue before the workers begin.
    assert_eq!(operator.metric("workqueue_adds_total"), 0, "nobody is concerned");
    world.end(operator).await
}

#[tokio::test]
async fn f18_what_the_server_refuses_is_tried_again() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f18").await?;
    let proxy = world.env.fault_proxy().await?;
    let fail = |what: &str| {
        Fault::on(Match::verb(RequestVerb::Apply).resource(what)).times(5).then(Answer::internal_error())
    };
    // Four tries are one call of the client; the fifth is of the next reconcile.
    let create = proxy.add(fail("deployments"));
    let status = proxy.add(fail("foos/status"));
    let operator = world.operator_with(world.user.config_through(&proxy.url())?).await?;
    world.create("web", spec("d", 1)).await?;
    world.available("web", 1).await?;
    assert_eq!((create.hits(), status.hits()), (5, 5));
    operator.idle_after(1).await?;
    let errors = operator.metric("controller_runtime_reconcile_errors_total");
    assert!(errors >= 2, "{errors}");
    let events: Vec<_> = world.events("web").await?;
    assert!(events.iter().all(|event| event.reason.as_deref() == Some("Synced")), "{events:?}");
    world.end(operator).await
}

/// In the original a stop before the caches have synced is an error. A stop is a stop: it is obeyed, and
/// readiness says what was waited for.
#[tokio::test]
async fn f19_a_stop_is_obeyed_while_the_caches_cannot_sync() -> Result<()> {
    let nowhere = kube::Config::new("http://127.0.0.1:9".parse()?);
    let operator = example_support::start(&foo::operator(), nowhere, &Settings::default())?;
    eventually("the operator to say what it waits for", || async {
        let report = operator.report();
        if report.contains("foos.samplecontroller.k8s.io") { Ok(()) } else { Err(report) }
    })
    .await?;
    Ok(operator.stop().await?)
}
