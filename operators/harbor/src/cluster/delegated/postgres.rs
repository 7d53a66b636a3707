//! PostgreSQL, run by Zalando's operator.
//!
//! That operator generates the password in a Secret of its own. Harbor's components read a copy under the key
//! that they expect; the copy is updated when the original changes. A running database keeps everything that
//! the spec does not set, because an unrequested change would restart it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ResourceRequirements, Secret};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Map, Value, json};
use windlass::{Needs, Plan, PlanError, Predecessor, Readiness};

use crate::api::harbor::DeletionPolicy;
use crate::api::postgres::{HarborDatabase, PostgresHost, SslMode};
use crate::api::{Harbor, HarborCluster};
use crate::catalogue::Delegated;
use crate::cluster::{Dependency, Site};
use crate::workload::at_field;

use super::found;
use super::kinds::{Postgresql, PostgresqlSpec, at, fields};

const USER: &str = "harbor";
const PORT: i32 = 5432;
/// Key of the password that Harbor's components read.
const KEY: &str = "postgres-password";
/// Default number of servers.
const INSTANCES: i64 = 3;
/// Major version of PostgreSQL for new databases. Changing it would upgrade the data of users.
const MAJOR: &str = "12";
/// The `pg_hba.conf` of a new database: network logins need TLS. Setting any line replaces all lines, so
/// those for replication are included.
const LOGINS: [&str; 7] = [
    "local all all trust",
    "local replication postgres trust",
    "hostssl replication postgres all md5",
    "local   replication standby trust",
    "hostssl replication standby all md5",
    "hostssl all +zalandos all pam",
    "hostssl all all all md5",
];
/// Roles of Harbor's user in a new database: it creates its own databases and is no superuser.
const ROLES: [&str; 1] = ["createdb"];
/// The value that the upstream operator wrote for a resource amount that the spec did not set.
const UNSAID: &str = "0";
/// Users of Zalando's operator whose Secrets the upstream operator made children of the HarborCluster.
const GIVEN_TO_US: [&str; 2] = ["postgres", "standby"];
/// Default suffix of the names of Zalando's Secrets.
const USUAL_END: &str = ".postgresql.acid.zalan.do";

/// Returns the names of the Secrets that may hold the password: the configured name and the default name.
fn credentials(site: &Site<'_>) -> [String; 2] {
    let name = site.names.postgres();
    let configured = site.settings.postgres_secret(USER, &name);
    let usual = format!("{USER}.{name}.credentials{USUAL_END}");
    [configured, usual]
}

/// Returns the names of Zalando's Secrets that the HarborCluster may own.
fn given_to_us(site: &Site<'_>) -> [String; 2] {
    GIVEN_TO_US.map(|user| site.settings.postgres_secret(user, &site.names.postgres()))
}

/// Returns true if the garbage collector would delete the object together with the HarborCluster.
fn goes_with(cluster: &HarborCluster, object: &ObjectMeta) -> bool {
    let uid = cluster.metadata.uid.as_ref();
    let is_it = |one: &OwnerReference| one.controller == Some(true) && Some(&one.uid) == uid;
    object.owner_references.iter().flatten().any(is_it)
}

/// Removes the owner reference of a Secret that would be deleted with the HarborCluster: the database is
/// retained, and nobody can log in without the Secret. Afterwards the Secret is no longer part of the plan.
fn let_go(site: &Site<'_>, secret: Secret, plan: &mut Plan) {
    let retained = matches!(site.common().deletion_policy(), DeletionPolicy::Retain);
    if retained && goes_with(site.cluster, &secret.metadata) {
        let name = secret.name_any();
        // The Secret exists, so this content is not used; if the Secret is deleted in this moment, it is
        // created again unchanged.
        let same = Secret { metadata: site.metadata(&name), ..secret };
        plan.create_once(&name, move |_| Ok(same.clone())).retain();
    }
}

/// Adds the database to the plan.
pub(crate) fn database(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<HarborDatabase>, PlanError> {
    let (name, secret) = (site.names.postgres(), site.names.database_password());
    let there = needs.observe::<Postgresql>(&name);
    let secrets = credentials(site).map(|secret| needs.observe::<Secret>(secret));
    let owned = given_to_us(site).map(|secret| needs.observe::<Secret>(secret));
    let there = found(there)?;
    let mut password = None;
    for secret in secrets {
        let secret = found(secret)?;
        password = password.or_else(|| secret?.data?.remove("password"));
    }
    // A preview has no values and shows the objects that would exist.
    let password = password.or_else(|| needs.is_assumed().then(ByteString::default));
    for secret in owned {
        if let Some(secret) = found(secret)? {
            let_go(site, secret, plan);
        }
    }
    let mut object = Postgresql::new(&name, PostgresqlSpec { fields: fields(spec(site, there.as_ref())?) });
    object.metadata = site.metadata(&name);
    let ssl_mode = ssl_mode(there.as_ref());
    let health = health(there);
    let database = site.keep(plan.add(object).ready_when(move |_| health.clone()));
    let copy = if let Some(password) = password {
        plan.add(copy(site, &secret, password))
            .takes_over(Predecessor::held_by::<Harbor>(site.names.harbor()))
    } else {
        let [configured, usual] = credentials(site);
        let why =
            format!("Zalando's operator has created neither Secret {configured} nor Secret {usual} yet");
        plan.pending::<Secret>(&secret, why)
    };
    let copy = copy.after([&database]);
    let settings = HarborDatabase {
        hosts: vec![PostgresHost { host: site.names.host(&name), port: Some(PORT) }],
        username: Some(USER.to_owned()),
        password_ref: Some(secret),
        prefix: None,
        ssl_mode: Some(ssl_mode),
        certificate_ref: None,
    };
    Ok(Dependency { settings: Ok(settings), needs: vec![database, copy] })
}

/// Returns the TLS mode of Harbor's connections: TLS with the server's own certificate for new databases. An
/// existing database without TLS keeps its mode, because a change would replace all pods, and the server may
/// not support TLS.
fn ssl_mode(there: Option<&Postgresql>) -> SslMode {
    let lines = there.and_then(|there| at(&there.spec.fields, "patroni/pg_hba")?.as_array());
    let is_plain =
        |line: &Value| line.as_str().and_then(|line| line.split_whitespace().next()) == Some("host");
    if lines.is_some_and(|lines| lines.iter().any(is_plain)) { SslMode::Disable } else { SslMode::Require }
}

fn copy(site: &Site<'_>, name: &str, password: ByteString) -> Secret {
    Secret {
        metadata: site.metadata(name),
        data: Some([(KEY.to_owned(), password)].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

fn spec(site: &Site<'_>, there: Option<&Postgresql>) -> Result<Value, PlanError> {
    let there = |place: &str| there.and_then(|there| at(&there.spec.fields, place));
    let spec = site.cluster.spec.database.as_ref().and_then(|database| database.spec.zalando.clone());
    let spec = spec.unwrap_or_default();
    let runs = there("dockerImage").and_then(Value::as_str);
    let image = site.image_that_runs(&spec.image, runs, |repository, suffix| {
        Delegated::Postgres.image_reference(repository, suffix)
    });
    let resources = match &spec.resources {
        Some(resources) => {
            let typed = resources.typed();
            typed.map_err(|error| at_field("spec.database.spec.zlandoPostgreSql.resources", &error))?
        }
        None => ResourceRequirements::default(),
    };
    let notary = site.common().notary.is_some().then_some(["notaryserver", "notarysigner"]);
    let databases = ["core"].into_iter().chain(notary.into_iter().flatten());
    let databases: serde_json::Map<String, Value> =
        databases.map(|name| (name.to_owned(), json!(USER))).collect();
    let volume = json!({
        "size": spec.storage.as_deref().unwrap_or("1Gi"),
        "storageClass": spec.storage_class_name,
    });
    Ok(json!({
        "teamId": site.names.postgres_team(),
        "numberOfInstances": spec.replicas.filter(|replicas| *replicas > 0).unwrap_or(INSTANCES),
        "dockerImage": image.reference,
        "volume": fields(volume),
        "users": {USER: there("users/harbor").cloned().unwrap_or_else(|| json!(ROLES))},
        "databases": databases,
        "patroni": {
            "initdb": {"encoding": "UTF8", "locale": "en_US.UTF-8", "data-checksums": "true"},
            "pg_hba": there("patroni/pg_hba").cloned().unwrap_or_else(|| json!(LOGINS)),
        },
        "postgresql": {
            "version": there("postgresql/version").cloned().unwrap_or_else(|| json!(MAJOR)),
            "parameters": {"max_connections": site.settings.postgresql_max_connections.to_string()},
        },
        "resources": amounts(&resources, there("resources")),
    }))
}

/// Returns CPU and memory in the format of Zalando's operator; null if neither is set.
fn amounts(resources: &ResourceRequirements, there: Option<&Value>) -> Value {
    let sorts = [("requests", resources.requests.as_ref()), ("limits", resources.limits.as_ref())];
    let rendered: Map<String, Value> = sorts
        .into_iter()
        .map(|(sort, set)| (sort.to_owned(), amounts_of(set, there.and_then(|there| there.get(sort)))))
        .filter(|(_, amounts)| !amounts.is_empty())
        .map(|(sort, amounts)| (sort, Value::Object(amounts)))
        .collect();
    if rendered.is_empty() { Value::Null } else { Value::Object(rendered) }
}

/// Returns the amounts of the spec, and for those that are unset the upstream operator's placeholder if it is
/// there: without it, Zalando's operator sets defaults of its own and restarts the servers with limits that
/// they never had.
fn amounts_of(set: Option<&BTreeMap<String, Quantity>>, there: Option<&Value>) -> Map<String, Value> {
    let set = set.into_iter().flatten().map(|(name, amount)| (name.clone(), json!(amount)));
    let unsaid = there.and_then(Value::as_object).into_iter().flatten();
    let unsaid = unsaid.filter(|(_, amount)| *amount == UNSAID);
    // The later one of two equal names counts.
    unsaid.map(|(name, amount)| (name.clone(), amount.clone())).chain(set).collect()
}

fn health(found: Option<Postgresql>) -> Readiness {
    let state = found.and_then(|found| found.status?.cluster);
    match state.as_deref() {
        Some("Running") => Readiness::Ready,
        Some(failed) if failed.ends_with("Failed") || failed == "Invalid" => Readiness::Failed(format!(
            "Zalando's operator reports {failed}: see its logs, and the object's events"
        )),
        Some(other) => Readiness::waiting(format!("Zalando's operator reports {other}")),
        None => Readiness::waiting("Zalando's operator has not reconciled it yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::blueprint::samples::delegated;

    #[test]
    fn a_secret_goes_with_the_cluster_that_controls_it_and_with_no_other() {
        let mut cluster = delegated();
        let meta = |uid: &str, controller: bool| -> ObjectMeta {
            let owner = json!({"apiVersion": "goharbor.io/v1beta1", "kind": "HarborCluster", "name": "sample", "uid": uid,
                "controller": controller});
            serde_json::from_value(json!({"name": "a", "ownerReferences": [owner]})).unwrap()
        };
        assert!(!goes_with(&cluster, &ObjectMeta::default()), "neither is anybody's");
        cluster.metadata.uid = Some("u".to_owned());
        assert!(goes_with(&cluster, &meta("u", true)));
        assert!(!goes_with(&cluster, &meta("v", true)), "an earlier one of that name");
        assert!(!goes_with(&cluster, &meta("u", false)), "another may control it");
        assert!(!goes_with(&cluster, &ObjectMeta::default()));
    }

    #[test]
    fn a15_a_new_database_is_reached_with_tls_only_and_one_that_was_reached_without_still_is() {
        let of = |lines: Value| {
            let spec = PostgresqlSpec { fields: fields(json!({"patroni": {"pg_hba": lines}})) };
            ssl_mode(Some(&Postgresql::new("x", spec)))
        };
        assert_eq!(ssl_mode(None), SslMode::Require);
        assert_eq!(of(json!(LOGINS)), SslMode::Require);
        assert_eq!(
            of(json!(["hostssl all all 0.0.0.0/0 md5", "host    all all 0.0.0.0/0 md5"])),
            SslMode::Disable
        );
        assert!(
            LOGINS.iter().all(|line| line.starts_with("local") || line.starts_with("hostssl")),
            "{LOGINS:?}"
        );
        assert!(!ROLES.contains(&"superuser"));
    }

    #[test]
    fn unset_resource_amounts_keep_the_placeholder_of_the_upstream_operator() {
        let requirements =
            |resources: Value| -> ResourceRequirements { serde_json::from_value(resources).unwrap() };
        let nothing = ResourceRequirements::default();
        assert_eq!(amounts(&nothing, None), Value::Null);
        let zeros = json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}});
        assert_eq!(amounts(&nothing, Some(&zeros)), zeros);
        let some = requirements(json!({"limits": {"cpu": "2"}}));
        assert_eq!(amounts(&some, None), json!({"limits": {"cpu": "2"}}));
        assert_eq!(
            amounts(&some, Some(&zeros)),
            json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "2", "memory": "0"}})
        );
        // An amount that was removed from the spec is removed here too.
        assert_eq!(amounts(&nothing, Some(&json!({"limits": {"cpu": "2", "memory": ""}}))), Value::Null);
    }

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
