//! Every property of a Game is mutated, with its webhooks: all cases, since there are few.

use std::path::Path;

use anyhow::{Context as _, Result};
use game::api::Game;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::PostParams;
use serde_json::json;
use windlass_testenv::mutation::Mutation;
use windlass_testenv::torture::{Kind, OperatorRun, Scene, StepResult};
use windlass_testenv::{TestEnv, or_not_run};

/// The text of a file in the directory beside this one.
fn read(name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutation").join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Returns true if the API server asks both webhooks about Games of the namespace.
async fn asks(scene: Scene) -> StepResult<bool> {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let try_out = async |spec| {
        let game = serde_json::from_value(json!({"metadata": {"generateName": "try-"}, "spec": spec}))?;
        StepResult::Ok(scene.api::<Game>().create(&dry, &game).await)
    };
    let filled = try_out(json!({})).await?.is_ok_and(|game| !game.spec.image.is_empty());
    Ok(filled && try_out(json!({"host": "*"})).await?.is_err())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_property_of_a_game_is_mutated() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let operator = game::operator();
    env.install_crds(operator.definitions()).await?;
    let spec = json!({"replicas": 1, "image": "2048:1", "host": "2048.example.com"});
    let base = json!({"metadata": {"name": "web"}, "spec": spec});
    let start =
        |run: OperatorRun| async move { example_support::run_with_webhooks(&game::operator(), &run).await };
    let mutation = Mutation::new("game", &operator.definitions()[0], base, start)
        .values(read("values.txt")?)
        .exceptions(read("exceptions.txt")?)
        .watch(Kind::of::<Deployment>())
        .watch(Kind::of::<Service>())
        .watch(Kind::of::<Ingress>())
        .serves(asks)
        .lanes(3);
    let report = or_not_run!(mutation.run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}
