//! Tests on a real control plane. `kit` starts the operator with exactly the permissions of its manifests.

mod kit;

use anyhow::Result;
{{if webhooks}}
use kube::api::PostParams;
{{end}}
use windlass_testenv::{TestEnv, eventually, or_not_run};
use {{crate}}::api::{{kind}};

use kit::World;

fn sample() -> Result<{{kind}}> {
    Ok(serde_saphyr::from_str(include_str!("../sample.yaml"))?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sample_becomes_ready() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "sample").await?;
    world.apply(&sample()?).await?;
    let objects = world.namespace.api::<{{kind}}>();
{{if blueprint}}
    eventually("the sample to be ready", || async {
        let found = objects.get("sample").await.map_err(|error| error.to_string())?;
        let status = serde_json::to_value(found.status).map_err(|error| error.to_string())?;
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        if ready { Ok(()) } else { Err(status.to_string()) }
    })
    .await?;
{{end}}
{{if reconciler}}
    eventually("both replicas to be available", || async {
        let found = objects.get("sample").await.map_err(|error| error.to_string())?;
        let available = found.status.as_ref().map(|status| status.available_replicas);
        if available == Some(2) { Ok(()) } else { Err(format!("{available:?}")) }
    })
    .await?;
{{end}}
    world.end().await
}
{{if mutate}}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_without_a_tag_gets_one() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "defaults").await?;
    let mut wanted = sample()?;
    wanted.spec.image = "nginx".into();
    let (objects, dry_run) = (world.namespace.api(), PostParams { dry_run: true, ..PostParams::default() });
    // The API server calls a webhook some time after it was registered: hence several attempts.
    eventually("the webhook to set the tag", || async {
        let stored: {{kind}} = objects.create(&dry_run, &wanted).await.map_err(|error| error.to_string())?;
        if stored.spec.image == "nginx:latest" { Ok(()) } else { Err(stored.spec.image) }
    })
    .await?;
    world.end().await
}
{{end}}
{{if validate}}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_with_spaces_is_rejected() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "rules").await?;
    let mut wanted = sample()?;
    wanted.spec.image = "not an image:1".into();
    let (objects, dry_run) = (world.namespace.api(), PostParams { dry_run: true, ..PostParams::default() });
    // The API server calls a webhook some time after it was registered: hence several attempts.
    eventually("the image to be rejected, with a remedy", || async {
        match objects.create(&dry_run, &wanted).await.map(|stored: {{kind}}| stored.spec.image) {
            Err(error) if error.to_string().contains("name an image, such as") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    world.end().await
}
{{end}}
