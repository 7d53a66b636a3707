//! Creation of the Deployment of a Foo.

use anyhow::Result;
use foo::api::Foo;
use kube::api::{Patch, PatchParams};
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{World, image, replicas, spec};

#[tokio::test]
async fn f01_a_foo_gets_its_deployment() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f01").await?;
    let operator = world.operator().await?;
    let foo = world.create("web", spec("d", 3)).await?;

    let made = world.deployment("d", "three replicas", |made| replicas(made) == Some(3)).await?;
    assert!(made.metadata.labels.is_none(), "it carries no labels itself");
    let spec = made.spec.as_ref().unwrap();
    let labels = [("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), "web".to_owned())].into();
    assert_eq!(spec.selector.match_labels, Some(labels));
    assert_eq!(spec.template.metadata.as_ref().unwrap().labels, spec.selector.match_labels);
    assert_eq!(
        (image(&made), spec.template.spec.as_ref().unwrap().containers.len()),
        (Some("nginx:latest"), 1)
    );
    let owners = made.metadata.owner_references.as_ref().unwrap();
    let [owner] = owners.as_slice() else { panic!("{owners:?}") };
    assert_eq!(
        (&owner.kind[..], &owner.name[..], Some(&owner.uid)),
        ("Foo", "web", foo.metadata.uid.as_ref())
    );
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    world.end(operator).await
}

#[tokio::test]
async fn f01_the_sample_manifest_applies_unchanged() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f01-sample").await?;
    let operator = world.operator().await?;
    let sample: Foo = serde_saphyr::from_str(include_str!("../../example-foo.yaml"))?;
    let strict = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::apply("user")
    };
    world.foos.patch("example-foo", &strict, &Patch::Apply(&sample)).await?;
    world.available("example-foo", 1).await?;
    world.end(operator).await
}

#[tokio::test]
async fn f02_the_status_and_an_event_tell_of_it() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f02").await?;
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    let mark = world.mark()?;
    world.create("web", spec("d", 2)).await?;

    world.available("web", 0).await?;
    let event = world.event("web", "Synced").await?;
    assert_eq!(
        (event.type_.as_deref(), event.note.as_deref()),
        (Some("Normal"), Some("Foo synced successfully"))
    );
    assert_eq!(event.reporting_controller.as_deref(), Some("sample-controller"));
    let writes = world.requests(mark)?.writes();
    let status = writes.filter(|write| write.resource == "foos");
    assert_eq!(
        (status.count(), status.filter(|write| write.subresource == "status").count()),
        (1, 1),
        "{writes}"
    );
    world.end(operator).await
}

/// In the original an update rebuilds the Deployment; here the field is simply not ours.
#[tokio::test]
async fn f05_replicas_that_are_not_named_are_left_to_others() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f05").await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", None)).await?;
    world.deployment("d", "the server's default", |made| replicas(made) == Some(1)).await?;

    let mark = world.mark()?;
    world.meddle("d", serde_json::json!({"spec": {"replicas": 4}})).await?;
    world.available("web", 4).await?;
    assert_eq!(replicas(&world.deployments.get("d").await?), Some(4));
    let writes = world.requests(mark)?.resource("deployments").writes();
    assert!(writes.is_empty(), "{writes}");
    world.end(operator).await
}

#[tokio::test]
async fn f10_a_foo_without_a_name_for_it_gets_none() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f10").await?;
    let operator = world.operator().await?;
    world.create("nameless", spec("", 1)).await?;
    operator.idle_after(1).await?;
    // One that comes later is served, and that one still is not.
    world.create("web", spec("d", 1)).await?;
    world.event("web", "Synced").await?;
    let written = world.requests(world.begun())?.writes().filter(|write| write.name.contains("nameless"));
    assert!(written.is_empty(), "{written}");
    assert!(world.events("nameless").await?.is_empty());
    assert_eq!(operator.metric("workqueue_retries_total"), 0);
    world.end(operator).await
}

/// The key comes by the deletion that the cache tells of, long after the Foo is gone.
#[tokio::test]
async fn f11_a_foo_that_is_gone_is_no_error() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f11").await?;
    let operator = world.operator().await?;
    world.create("nameless", spec("", 1)).await?;
    operator.idle_after(1).await?;
    let mark = world.mark()?;
    world.foos.delete("nameless", &kube::api::DeleteParams::default()).await?;
    operator.idle_after(2).await?;
    assert_eq!(operator.metric("controller_runtime_reconcile_errors_total"), 0);
    assert_eq!(operator.metric("workqueue_retries_total"), 0);
    let requests = world.requests(mark)?;
    assert!(requests.is_empty(), "{requests}");
    world.end(operator).await
}

#[tokio::test]
async fn f20_replicas_out_of_range_are_refused_by_the_schema() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f20").await?;
    for (replicas, name) in [(0, "none"), (11, "many")] {
        let Err(error) = world.create(name, spec("d", replicas)).await else {
            panic!("{replicas} was taken")
        };
        let Some(kube::Error::Api(status)) = error.downcast_ref() else { panic!("{error}") };
        assert_eq!((status.code, status.message.contains("spec.replicas")), (422, true), "{status:?}");
    }
    for (replicas, name) in [(1, "one"), (10, "ten")] {
        world.create(name, spec("d", replicas)).await?;
    }
    Ok(())
}
