//! The promises of the original's README, with its own sample, as `kubectl` shows them.

use anyhow::{Context as _, Result};
use game::api::{Game, Phase};
use kube::api::{Patch, PatchParams, ValidationDirective};
use serde_json::Value;
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::World;

/// Returns the columns that `kubectl get` shows, and this object's cells in them.
async fn table(world: &World, path: &str, name: &str) -> Result<(Vec<String>, Vec<String>)> {
    let request = http::Request::get(format!("{path}/{name}"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = world.env.client().request(request).await?;
    // Those of priority 0: the rest is for `-o wide`.
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let cells = table["rows"][0]["cells"].as_array().context("no row")?;
    let shown = columns.iter().zip(cells).filter(|(column, _)| column["priority"] == 0);
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    Ok(shown.map(|(column, cell)| (text(&column["name"]), text(cell))).unzip())
}

#[tokio::test]
async fn a1_to_a4_the_sample_applies_unchanged_and_kubectl_shows_that_it_runs() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "readme").await?;
    let operator = world.operator().await?;

    // A1
    let sample: Game = serde_saphyr::from_str(include_str!("../../game-sample.yaml"))?;
    let strict =
        PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("user") };
    world.games.patch("game-sample", &strict, &Patch::Apply(&sample)).await?;
    world.phase("game-sample", Phase::Running).await?;

    // A2
    let namespace = world.namespace.name();
    let games = format!("/apis/myapp.qingwave.github.io/v1/namespaces/{namespace}/games");
    let (columns, cells) = table(&world, &games, "game-sample").await?;
    assert_eq!(columns, ["Name", "Phase", "Host", "DESIRED", "CURRENT", "READY", "AGE", "Reason"]);
    assert_eq!(cells[..6], ["game-sample", "Running", "mygame.io", "1", "1", "1"], "{cells:?}");
    assert_eq!(cells[7], "Ready", "{cells:?}");

    // A3
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let (columns, cells) = table(&world, &deployments, "game-sample").await?;
    assert_eq!((&columns[1][..], &cells[1][..]), ("Ready", "1/1"), "{columns:?} {cells:?}");

    // A4
    let ingresses = format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses");
    let (columns, cells) = table(&world, &ingresses, "game-sample").await?;
    let shown = |column: &str| columns.iter().position(|name| name == column).map(|at| cells[at].as_str());
    assert_eq!((shown("Hosts"), shown("Ports")), (Some("mygame.io"), Some("80")), "{columns:?} {cells:?}");
    world.end(operator).await
}
