//! Upgrades, with the real database that Core would migrate; its migrations are played by hand, since its
//! pods only say that they run.

use anyhow::{Context as _, Result};
use harbor_operator::api::{Core, Harbor};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_testenv::{TestEnv, or_not_run};

use crate::kit::postgres::{PostgresServer, ask};
use crate::world::{World, harbor, status_and_message};

/// A PostgreSQL with the database of a Core.
struct Database {
    _dir: TempDir,
    server: PostgresServer,
}

impl Database {
    fn start() -> Result<Self> {
        let dir = TempDir::new()?;
        let server = PostgresServer::start(dir.path(), "harbor", "password", None);
        let database = Self { _dir: dir, server };
        database.run("postgres", "create database core")?;
        Ok(database)
    }

    fn run(&self, database: &str, statement: &str) -> Result<String> {
        let port = self.server.port;
        let words = format!("host=127.0.0.1 port={port} user=harbor password=password dbname={database}");
        ask(&words, None, statement).map_err(anyhow::Error::msg)
    }

    /// Returns the number of sessions of Core's database; the statistics count all sessions that have ended.
    fn visits(&self) -> Result<u64> {
        let count = "select sessions from pg_stat_database where datname = 'core'";
        Ok(self.run("postgres", count)?.parse()?)
    }
}

fn image(core: &Deployment) -> String {
    let pods = core.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pods.and_then(|pods| pods.containers.first()?.image.clone()).unwrap_or_default()
}

fn status(core: &Core) -> Value {
    json!(core.status)
}

#[tokio::test]
async fn an_upgrade_reads_the_schema_stops_at_a_dirty_one_and_goes_on_when_it_is_mended() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let database = Database::start()?;
    database
        .run("core", "create table schema_migrations (version bigint primary key, dirty boolean not null)")?;
    database.run("core", "insert into schema_migrations values (171, false)")?;
    let world = World::new(env, "schema").await?;
    let operator = world.operator().await?;
    let mut wanted = harbor();
    wanted["spec"]["version"] = json!("2.14.4");
    wanted["spec"]["database"]["hosts"] = json!([{"host": "127.0.0.1", "port": database.server.port}]);
    world.put::<Harbor>(wanted).await?;
    world.ready().await?;
    let clean = |number: u32| {
        move |harbor: &Harbor| {
            status_and_message(harbor, "SchemaClean")
                == ("True".into(), format!("the database is at schema {number}"))
        }
    };
    world.see("sample", "told of the schema", clean(171)).await?;
    let core: Core = world.get("sample-harbor").await?;
    assert_eq!(status(&core)["schema"], json!({"version": 171, "dirty": false}));
    assert_eq!(status(&core)["version"], "2.14.4");

    // The database of a Harbor that does not change is not read, also not after a restart.
    let (visits, reconciles) = (database.visits()?, operator.settled().await?);
    assert!(visits > 0, "it was read");
    world.change::<Core>("sample-harbor", json!({"metadata": {"annotations": {"look": "again"}}})).await?;
    operator.idle_after(reconciles + 1).await?;
    operator.stop().await?;
    let operator = world.operator().await?;
    operator.idle_after(6).await?;
    operator.settled().await?;
    assert_eq!(database.visits()?, visits);
    let core: Core = world.get("sample-harbor").await?;
    assert_eq!(status(&core)["schema"], json!({"version": 171, "dirty": false}), "it is kept");

    // A migration that was interrupted: nothing is replaced, and it is said what to do.
    database.run("core", "update schema_migrations set version = 180, dirty = true")?;
    world.change::<Harbor>("sample", json!({"spec": {"version": "2.15.2"}})).await?;
    let failed = world
        .see("sample", "failed", |harbor: &Harbor| {
            status_and_message(harbor, "Failed").0 == "True"
                && status_and_message(harbor, "SchemaClean").0 == "False"
        })
        .await?;
    let message = status_and_message(&failed, "Ready").1;
    for part in ["dirty at schema 180", "backup", "schema_migrations"] {
        assert!(message.contains(part), "{part:?} in {message:?}");
    }
    let core: Core = world.get("sample-harbor").await?;
    assert_eq!(status(&core)["schema"], json!({"version": 180, "dirty": true}));
    assert_eq!(status(&core)["version"], "2.14.4");
    assert!(image(&world.get("sample-harbor-core").await?).ends_with(":v2.14.4"));
    assert_eq!(json!(failed.status)["version"], "2.14.4");

    // Mended by a person, it goes on by itself.
    database.run("core", "update schema_migrations set dirty = false")?;
    world.see("sample", "told of the new schema", clean(180)).await?;
    let ready = world.ready().await?;
    assert_eq!(json!(ready.status)["version"], "2.15.2");
    assert!(image(&world.get("sample-harbor-core").await?).ends_with(":v2.15.2"));
    let core: Core = world.get("sample-harbor").await.context("Core")?;
    assert_eq!(status(&core)["version"], "2.15.2");
    assert_eq!(status(&core)["schema"], json!({"version": 180, "dirty": false}));
    world.end(operator).await
}
