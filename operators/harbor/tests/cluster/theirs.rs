//! Tests that the manifests of users of the archived operator become ready unchanged.

use anyhow::Result;
use harbor_operator::api::{Harbor, HarborCluster};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_testenv::{Options, TestEnv, or_not_run};

use crate::others::{certificates, definitions, play_cert_manager, play_minio, play_postgres, play_redis};
use crate::sample::{operator, word};
use crate::world::{World, status_and_message};

const MANIFESTS: &str = include_str!("../manifests/newer.yaml");

/// The manifest of this name.
fn manifest(name: &str) -> Result<Value> {
    for document in MANIFESTS.split("---\n") {
        let object: Value = serde_saphyr::from_str(document)?;
        if object["metadata"]["name"] == name {
            return Ok(object);
        }
    }
    anyhow::bail!("there is no {name}")
}

#[tokio::test]
async fn a_minimal_harbor_and_a_full_stack_come_up_as_they_were_written() -> Result<()> {
    // cert-manager's kind is the whole control plane's, and other tests do without.
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    env.install_crds(&definitions()).await?;
    env.install_crds(&[certificates()]).await?;
    let world = World::new(TestEnv::clone(&env), "theirs").await?;
    for (name, data) in [
        ("admin-core-secret", json!({"secret": "Harbor12345"})),
        ("database", json!({"postgres-password": "password"})),
        ("minio", json!({"accesskey": "access", "secretkey": "secret"})),
    ] {
        world.put::<Secret>(json!({"metadata": {"name": name}, "stringData": data})).await?;
    }
    let running = operator(&world).await?;
    world.put::<Harbor>(manifest("minimal")?).await?;
    world.put::<HarborCluster>(manifest("full-stack")?).await?;

    play_redis(&world, "full-stack").await?;
    play_postgres(&world, "full-stack").await?;
    play_minio(&world, "full-stack").await?;
    for harbor in ["minimal", "full-stack-harbor"] {
        play_cert_manager(&world, &format!("{harbor}-harbor-core-tokencert"), "tokens").await?;
    }
    world.see("minimal", "ready", |harbor: &Harbor| status_and_message(harbor, "Ready").0 == "True").await?;
    world.see("full-stack", "healthy", |cluster: &HarborCluster| word(cluster) == "healthy").await?;
    world.end(running).await
}
