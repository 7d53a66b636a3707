//! PostgreSQL, run by Zalando's operator.
//!
//! That operator makes the password itself, in a Secret of its own; Harbor's components read a copy under the key that they know, which
//! follows when the other changes.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ResourceRequirements, Secret};
use serde_json::{Value, json};
use windlass::{DrawError, Inputs, Plan, Readiness, Resolved};

use crate::api::Harbor;
use crate::api::postgres::{HarborDatabase, PostgresHost, SslMode};
use crate::catalogue::Delegated;
use crate::cluster::{Part, Site};
use crate::workload::at_field;

use super::kinds::{Postgresql, PostgresqlSpec, fields};

const USER: &str = "harbor";
const PORT: i32 = 5432;
/// The key that Harbor's components look for.
const KEY: &str = "postgres-password";
/// How many servers, where nothing is said.
const INSTANCES: i64 = 3;
/// The major of PostgreSQL. Another one means an upgrade of somebody's data, which is not ours to begin.
const MAJOR: &str = "12";
/// What ends the names of Secrets where nobody has told that operator otherwise.
const USUAL_END: &str = ".postgresql.acid.zalan.do";

/// The Secrets in which the password may be: as it is configured, and as it is by default.
fn credentials(site: &Site<'_>) -> [String; 2] {
    let name = site.names.postgres();
    let configured = site.settings.postgres_secret(USER, &name);
    let usual = format!("{USER}.{name}.credentials{USUAL_END}");
    [configured, usual]
}

/// What is looked at to know whether it is healthy, and which password it has.
pub fn inputs(site: &Site<'_>, inputs: &mut Inputs) {
    inputs.observe::<Postgresql>(site.names.postgres());
    for secret in credentials(site) {
        inputs.observe::<Secret>(secret);
    }
}

/// Plans a database.
pub fn database(
    site: &Site<'_>,
    given: &Resolved,
    plan: &mut Plan,
) -> Result<Part<HarborDatabase>, DrawError> {
    let (name, secret) = (site.names.postgres(), site.names.database_password());
    let mut object = Postgresql::new(&name, PostgresqlSpec { fields: fields(spec(site)?) });
    object.metadata = site.metadata(&name);
    let health = health(given.observed(&name));
    let database = site.keep(plan.add(object).ready_when(move |_| health.clone()));
    let password = credentials(site)
        .iter()
        .filter_map(|name| given.observed::<Secret>(name))
        .find_map(|found| found.data?.remove("password"))
        // A preview has no values, and shows what there would be.
        .or_else(|| given.is_assumed().then(ByteString::default));
    let copy = if let Some(password) = password {
        plan.add(copy(site, &secret, password)).vouched_for_by::<Harbor>(site.names.harbor())
    } else {
        let [configured, usual] = credentials(site);
        let why = format!("Zalando's operator has made neither Secret {configured} nor Secret {usual} yet");
        plan.pending::<Secret>(&secret, why)
    };
    let copy = copy.after([&database]);
    let told = HarborDatabase {
        hosts: vec![PostgresHost { host: site.names.host(&name), port: Some(PORT) }],
        username: Some(USER.to_owned()),
        password_ref: Some(secret),
        prefix: None,
        ssl_mode: Some(SslMode::Disable),
    };
    Ok(Part { told: Ok(told), needs: vec![database, copy] })
}

fn copy(site: &Site<'_>, name: &str, password: ByteString) -> Secret {
    Secret {
        metadata: site.metadata(name),
        data: Some([(KEY.to_owned(), password)].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

fn spec(site: &Site<'_>) -> Result<Value, DrawError> {
    let given = site.cluster.spec.database.as_ref().and_then(|database| database.spec.zalando.clone());
    let given = given.unwrap_or_default();
    let image = site
        .image(&given.image, |repository, suffix| Delegated::Postgres.image_reference(repository, suffix));
    let resources = match &given.resources {
        Some(resources) => {
            let typed = resources.typed();
            let typed =
                typed.map_err(|error| at_field("spec.database.spec.zlandoPostgreSql.resources", &error))?;
            amounts(&typed)
        }
        None => Value::Null,
    };
    let notary = site.common().notary.is_some().then_some(["notaryserver", "notarysigner"]);
    let databases = ["core"].into_iter().chain(notary.into_iter().flatten());
    let databases: serde_json::Map<String, Value> =
        databases.map(|name| (name.to_owned(), json!(USER))).collect();
    let volume = json!({
        "size": given.storage.as_deref().unwrap_or("1Gi"),
        "storageClass": given.storage_class_name,
    });
    Ok(json!({
        "teamId": site.names.postgres_team(),
        "numberOfInstances": given.replicas.filter(|replicas| *replicas > 0).unwrap_or(INSTANCES),
        "dockerImage": image.reference,
        "volume": fields(volume),
        "users": {USER: ["superuser", "createdb"]},
        "databases": databases,
        "patroni": {
            "initdb": {"encoding": "UTF8", "locale": "en_US.UTF-8", "data-checksums": "true"},
            "pg_hba": ["hostssl all all 0.0.0.0/0 md5", "host    all all 0.0.0.0/0 md5"],
        },
        "postgresql": {
            "version": MAJOR,
            "parameters": {"max_connections": site.settings.postgresql_max_connections.to_string()},
        },
        "resources": resources,
    }))
}

/// CPU and memory, as Zalando's operator has them.
fn amounts(given: &ResourceRequirements) -> Value {
    let of = |all: &Option<std::collections::BTreeMap<String, _>>| match all {
        Some(all) => json!(all),
        None => Value::Null,
    };
    let of_type: [(&str, Value); 2] = [("requests", of(&given.requests)), ("limits", of(&given.limits))];
    let said = of_type.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(said.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn health(found: Option<Postgresql>) -> Readiness {
    let said = found.and_then(|found| found.status?.cluster);
    match said.as_deref() {
        Some("Running") => Readiness::Ready,
        Some(failed) if failed.ends_with("Failed") || failed == "Invalid" => Readiness::Failed(format!(
            "Zalando's operator says {failed}: see its logs, and the object's events"
        )),
        Some(other) => Readiness::waiting(format!("Zalando's operator says {other}")),
        None => Readiness::waiting("Zalando's operator has not seen it yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_ready_when_it_runs_and_failed_when_its_operator_gave_up() {
        let found = |word: Option<&str>| {
            let mut object = Postgresql::new("x", PostgresqlSpec::default());
            object.status =
                word.map(|word| super::super::kinds::PostgresqlStatus { cluster: Some(word.into()) });
            health(Some(object))
        };
        assert_eq!(found(Some("Running")), Readiness::Ready);
        assert!(matches!(found(Some("Creating")), Readiness::Waiting(_)));
        assert!(matches!(found(Some("UpdateFailed")), Readiness::Failed(_)));
        assert!(matches!(found(None), Readiness::Waiting(_)));
        assert!(matches!(health(None), Readiness::Waiting(_)));
    }
}
