//! The built-in database: PostgreSQL as Harbor ships it.
//!
//! The image contains two majors of PostgreSQL and upgrades the data of the older one when it starts. No
//! allowed upgrade of Harbor skips a major.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use serde_json::json;
use windlass::naming::{self, name};
use windlass::{Needs, Plan, PlanError, Planned};

use crate::api::harborcluster_parts::BuiltInVolume;
use crate::api::postgres::{HarborDatabase, PostgresHost, SslMode};
use crate::catalogue::{Component, Release, Version, admit_change};
use crate::cluster::{Dependency, Site, password};

use super::claim::Claim;
use super::server::{Files, Server, secret_env};

const PORT: u16 = 5432;
/// Key of the password that Harbor's components read.
const KEY: &str = "postgres-password";
/// The superuser that the image creates; it owns all databases.
const USER: &str = "postgres";
/// Mount path of the volume. The image keeps its data in a subdirectory, so that `lost+found` does not
/// disturb it.
const DATA: &str = "/var/lib/postgresql/data";
/// SQL that the image runs once, when it initialises an empty data directory. The variable `POSTGRES_DB`
/// cannot be used: the image would also create that database during an upgrade to a new major, where the
/// migrated data already has it.
const AT_FIRST: &str = "CREATE DATABASE core;\n";
const AT_FIRST_FILE: &str = "core.sql";
/// Directory in which the image looks for SQL files to run at initialisation.
const AT_FIRST_DIRECTORY: &str = "/docker-entrypoint-initdb.d";
/// Removes the mark of an unfinished initialisation. The image runs the files in the order of their names:
/// this one is the last.
const FINISHED: &str = include_str!("scripts/finished.sql");
const FINISHED_FILE: &str = "zz-finished.sql";
/// Repeats an initialisation that was interrupted.
const START: &str = include_str!("scripts/start.sh");
const START_FILE: &str = "start.sh";
/// Checks the database as a client sees it.
const READY: &str = include_str!("scripts/ready.sh");
const READY_FILE: &str = "ready.sh";
/// Directory of the scripts in the container.
const SCRIPTS: &str = "/harbor-operator";

/// Adds the database server to the plan.
pub(crate) fn database(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<HarborDatabase>, PlanError> {
    let spec = site.cluster.spec.database.as_ref().and_then(|database| database.spec.built_in.clone());
    let spec = spec.unwrap_or_default();
    let (own, secret) = (site.names.database(), site.names.database_password());
    let release = release(site)?;
    let image = site.image(&spec.image, |repository, suffix| {
        release.image_reference(Component::Database, repository, suffix).unwrap_or_default()
    });
    let secret_node = password::plan(site, &secret, &[KEY], plan);
    let volume = Claim {
        name: &own,
        field: "spec.database.spec.builtIn",
        volume: &spec.volume,
        usual_size: BuiltInVolume::OF_DATABASE,
        modes: &[],
    };
    let volume = volume.plan(site, needs, plan)?;
    let at_first = name([&*own, "init"], naming::LABEL);
    // Core's database. The images of releases with Notary create the databases of Notary themselves.
    let at_first_node = plan.add(ConfigMap {
        metadata: site.metadata(&at_first),
        data: Some(
            [(AT_FIRST_FILE, AT_FIRST), (FINISHED_FILE, FINISHED), (START_FILE, START), (READY_FILE, READY)]
                .map(|(name, content)| (name.to_owned(), content.to_owned()))
                .into(),
        ),
        ..ConfigMap::default()
    });
    let connections = site.settings.postgresql_max_connections;
    let server = Server {
        name: own.clone(),
        component: Component::Database,
        image,
        command: None,
        env: vec![
            json!({"name": "PGDATA", "value": format!("{DATA}/pgdata")}),
            json!({"name": "POSTGRES_MAX_CONNECTIONS", "value": connections.to_string()}),
            secret_env("POSTGRES_PASSWORD", &secret, KEY),
            json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
            // The entrypoint of the image is a bash script. Its arguments name the majors of PostgreSQL that
            // the image has, so it cannot be replaced.
            json!({"name": "BASH_ENV", "value": format!("{SCRIPTS}/{START_FILE}")}),
        ],
        port: PORT,
        data: DATA,
        scratch: vec![("/dev/shm", "512Mi")],
        files: Some(Files {
            config_map: at_first,
            paths: vec![
                (AT_FIRST_DIRECTORY, AT_FIRST_FILE),
                (AT_FIRST_DIRECTORY, FINISHED_FILE),
                (SCRIPTS, START_FILE),
                (SCRIPTS, READY_FILE),
            ],
        }),
        lives: json!({"exec": {"command": ["/docker-healthcheck.sh"]}}),
        serves: json!({"exec": {"command": ["/bin/sh", format!("{SCRIPTS}/{READY_FILE}")]}}),
        // One hour: the server may have to upgrade all data to another major.
        patience: 360,
        before: Some(
            ["/bin/sh", "-c", &format!("chmod 700 {DATA}/pgdata/pg* || true")].map(str::to_owned).into(),
        ),
        resources: spec.resources.as_ref(),
        field: "spec.database.spec.builtIn.resources",
    };
    // The first pod of a newer version upgrades the data.
    let upgraded = site.standing.as_ref().filter(|standing| *standing != release.version());
    let former = upgraded.map(|standing| {
        plan.record_if_absent::<PersistentVolumeClaim>(&own, standing.to_string()).after([&volume])
    });
    let before: Vec<Planned> = [secret_node, volume, at_first_node].into_iter().chain(former).collect();
    let mut needs = server.plan(site, &before, plan)?;
    needs.extend(before);
    let settings = HarborDatabase {
        hosts: vec![PostgresHost { host: site.names.host(&own), port: Some(i32::from(PORT)) }],
        username: Some(USER.to_owned()),
        password_ref: Some(secret),
        prefix: None,
        ssl_mode: Some(SslMode::Disable),
        certificate_ref: None,
    };
    Ok(Dependency { settings: Ok(settings), needs })
}

/// Returns the release whose images are used. An upgrade that is not allowed fails here, because otherwise
/// the database would be upgraded before Harbor refuses the version.
pub(super) fn release(site: &Site<'_>) -> Result<Release, PlanError> {
    let wrong = |error: &dyn std::fmt::Display| PlanError::new(format!("spec.version: {error}"));
    let version: Version = site.common().version.parse().map_err(|error| wrong(&error))?;
    if let Some(standing) = &site.standing {
        admit_change(standing, &version)?;
    }
    Release::of(&version).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass::live::LONGEST_QUOTE;

    #[test]
    fn users_d4_the_status_quotes_the_whole_message_of_an_interrupted_first_start() {
        let (_, message) = START.split_once("harbor_message=\"").unwrap();
        let (message, _) = message.split_once("\"\n").unwrap();
        let mark = format!("{DATA}/pgdata/initialising");
        let message = message.replace("\\\n", "").replace("$harbor_mark", &mark);
        assert!(!message.contains(['$', '\\', '\n']), "as the shell expands it: {message}");
        assert!(message.ends_with(&format!("then delete the file {mark}")), "{message}");
        assert!(message.len() <= LONGEST_QUOTE, "{} bytes: {message}", message.len());
    }
}
