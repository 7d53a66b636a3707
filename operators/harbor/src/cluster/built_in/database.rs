//! PostgreSQL, as Harbor ships it.
//!
//! Its image holds two majors of PostgreSQL, and brings data of the older one to the newer when it starts. The steps between versions
//! that are allowed never skip one.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::naming::{self, name};
use windlass::{Plan, PlanError};

use crate::api::postgres::{HarborDatabase, PostgresHost, SslMode};
use crate::catalogue::{Component, Release, Version, admit_change};
use crate::cluster::{Part, Site, password};
use crate::harbor::upgrade::FIELD as VERSION;

use super::claim;
use super::server::{File, Server, secret_env};

const PORT: u16 = 5432;
/// The key that Harbor's components look for.
const KEY: &str = "postgres-password";
/// The user that the image makes, who owns everything.
const USER: &str = "postgres";
/// Where the image keeps its data, in a directory that the volume's own files (`lost+found`) do not disturb.
const DATA: &str = "/var/lib/postgresql/data";
/// What the image runs once, when there are no data yet. Its variable `POSTGRES_DB` would have the database made also where data of an older
/// major are about to come, and then they do not: they have a database of that name themselves.
const AT_FIRST: &str = "CREATE DATABASE core;\n";
const AT_FIRST_FILE: &str = "core.sql";
/// Where the image looks for it.
const AT_FIRST_DIRECTORY: &str = "/docker-entrypoint-initdb.d";

/// Plans a PostgreSQL, with the databases that a Harbor needs.
pub fn database(site: &Site<'_>, plan: &mut Plan) -> Result<Part<HarborDatabase>, PlanError> {
    let given = site.cluster.spec.database.as_ref().and_then(|database| database.spec.built_in.clone());
    let given = given.unwrap_or_default();
    let (own, secret) = (site.names.database(), site.names.database_password());
    let release = release(site)?;
    let image = site.image(&given.image, |repository, suffix| {
        release.image_reference(Component::Database, repository, suffix).unwrap_or_default()
    });
    let secret_node = password::plan(site, &secret, &[KEY], plan);
    let volume = claim::plan(site, &own, &given.volume, "10Gi", &[], plan)?;
    let at_first = name([&*own, "init"], naming::LABEL);
    // Core's; those of Notary are made by the images of the releases that have it.
    let at_first_node = plan.add(ConfigMap {
        metadata: site.metadata(&at_first),
        data: Some([(AT_FIRST_FILE.to_owned(), AT_FIRST.to_owned())].into()),
        ..ConfigMap::default()
    });
    let connections = site.settings.postgresql_max_connections;
    let check = json!({"exec": {"command": ["/docker-healthcheck.sh"]}});
    let server = Server {
        name: own.clone(),
        component: Component::Database,
        image,
        command: None,
        env: vec![
            json!({"name": "PGDATA", "value": format!("{DATA}/pgdata")}),
            json!({"name": "POSTGRES_MAX_CONNECTIONS", "value": connections.to_string()}),
            secret_env("POSTGRES_PASSWORD", &secret, KEY),
        ],
        port: PORT,
        data: DATA,
        scratch: vec![("/dev/shm", "512Mi")],
        file: Some(File { config_map: at_first, directory: AT_FIRST_DIRECTORY, name: AT_FIRST_FILE }),
        lives: check.clone(),
        serves: check,
        // An hour: it may have to bring all data to another major.
        patience: 360,
        before: Some(
            ["/bin/sh", "-c", &format!("chmod 700 {DATA}/pgdata/pg* || true")].map(str::to_owned).into(),
        ),
        resources: given.resources.as_ref(),
        field: "spec.database.spec.builtIn.resources",
    };
    let before = [secret_node, volume, at_first_node];
    let mut needs = server.plan(site, &before, plan)?;
    needs.extend(before);
    let told = HarborDatabase {
        hosts: vec![PostgresHost { host: site.names.host(&own), port: Some(i32::from(PORT)) }],
        username: Some(USER.to_owned()),
        password_ref: Some(secret),
        prefix: None,
        ssl_mode: Some(SslMode::Disable),
    };
    Ok(Part { told: Ok(told), needs })
}

/// The release whose images are used. A step that is not allowed must not reach the data: it would be done before Harbor refuses it.
pub(super) fn release(site: &Site<'_>) -> Result<Release, PlanError> {
    let wrong = |error: &dyn std::fmt::Display| PlanError::new(format!("spec.version: {error}"));
    let version: Version = site.common().version.parse().map_err(|error| wrong(&error))?;
    let status = site.cluster.status.as_ref();
    let standing = status.and_then(|status| status.other.get(VERSION)?.as_str()?.parse::<Version>().ok());
    if let Some(standing) = standing {
        admit_change(&standing, &version)?;
    }
    Release::of(&version).map_err(|error| wrong(&error))
}
