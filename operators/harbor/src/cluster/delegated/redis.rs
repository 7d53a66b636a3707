//! Redis with Sentinels, run by Spotahome's Redis operator.
//!
//! A RedisFailover has no status: it is healthy when the StatefulSet of its servers and the Deployment of its
//! Sentinels are.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use serde_json::{Value, json};
use windlass::{Known, Needs, Object, Plan, PlanError, Predecessor, Readiness, readiness};

use crate::api::redis::RedisHost;
use crate::catalogue::Delegated;
use crate::cluster::{Dependency, Site, password};
use crate::workload::at_field;

use super::found;
use super::kinds::{RedisFailover, RedisFailoverSpec, at, fields};

const SENTINEL_PORT: i32 = 26379;
/// The name of the master in Sentinel.
const MASTER: &str = "mymaster";
/// Default number of servers, and of Sentinels.
const REPLICAS: i64 = 3;
/// The keys under which Harbor's components and the Redis operator read the same password.
const KEYS: [&str; 2] = ["redis-password", "password"];

fn servers(name: &str) -> String {
    format!("rfr-{name}")
}

fn sentinels(name: &str) -> String {
    format!("rfs-{name}")
}

/// Adds a RedisFailover to the plan.
pub(crate) fn cache(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<RedisHost>, PlanError> {
    let spec = site.cluster.spec.cache.as_ref().and_then(|cache| cache.spec.redis_failover.clone());
    let spec = spec.unwrap_or_default();
    let name = site.names.cache();
    let observed = needs.observe::<RedisFailover>(&name);
    let health = Health::ask(&name, needs);
    let found = found(observed)?;
    let secret =
        password::plan(site, &name, &KEYS, plan).takes_over(Predecessor::held_by::<RedisFailover>(&*name));
    let there = |place: &str| found.as_ref().and_then(|found| at(&found.spec.fields, place));
    let runs = there("redis/image").and_then(Value::as_str);
    let image = site.image_that_runs(&spec.image, runs, |repository, suffix| {
        Delegated::Redis.image_reference(repository, suffix)
    });
    let server = spec.server.as_ref();
    let resources = match server.and_then(|server| server.resources.as_ref()) {
        Some(resources) => {
            json!(
                resources
                    .typed()
                    .map_err(|error| at_field("spec.cache.spec.redisFailover.server.resources", &error))?
            )
        }
        None => json!({}),
    };
    let capacity = server.and_then(|server| server.storage.as_deref()).unwrap_or("1Gi");
    let account = server.and_then(|server| server.service_account_name.as_deref());
    let pod = |replicas: Option<i64>| {
        let replicas = replicas.filter(|replicas| *replicas > 0).unwrap_or(REPLICAS);
        let all = json!({
            "replicas": replicas,
            "resources": resources,
            "image": image.reference,
            "imagePullPolicy": image.policy,
            "imagePullSecrets": image.secrets(),
            "serviceAccountName": account,
        });
        Value::Object(fields(all))
    };
    let mut redis = pod(server.map(|server| server.replicas));
    // The claims of an existing StatefulSet are immutable, labels included; the live labels may have more
    // entries than ours.
    let labels = there("redis/storage/persistentVolumeClaim/metadata/labels");
    redis["storage"] = json!({
        "keepAfterDeletion": true,
        "persistentVolumeClaim": {
            "metadata": fields(json!({"name": site.names.label(), "labels": labels})),
            "spec": fields(json!({
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": server.and_then(|server| server.storage_class_name.as_deref()),
                "resources": {"requests": {"storage": capacity}},
            })),
        },
    });
    let sentinel = pod(spec.sentinel.as_ref().map(|sentinel| sentinel.replicas));
    let all = fields(json!({"redis": redis, "sentinel": sentinel, "auth": {"secretPath": name}}));
    let mut failover = RedisFailover::new(&name, RedisFailoverSpec { fields: all });
    failover.metadata = site.metadata(&name);
    let health = health.of(&name)?;
    let failover = plan.add(failover).ready_when(move |_| health.clone()).after([&secret]);
    let settings = RedisHost {
        host: sentinels(&name),
        port: Some(SENTINEL_PORT),
        sentinel_master_set: Some(MASTER.to_owned()),
        password_ref: Some(name),
        certificate_ref: None,
    };
    Ok(Dependency { settings: Ok(settings), needs: vec![secret, failover] })
}

/// The live objects that the Redis operator has created.
struct Health {
    servers: Known<Option<Object<StatefulSet>>>,
    sentinels: Known<Option<Object<Deployment>>>,
}

impl Health {
    fn ask(name: &str, needs: &Needs<'_>) -> Self {
        Self { servers: needs.observe(servers(name)), sentinels: needs.observe(sentinels(name)) }
    }

    fn of(self, name: &str) -> Result<Readiness, PlanError> {
        let set = self.servers.or_wait()?.and_then(|set| set.live(readiness::stateful_set));
        let deployment = self.sentinels.or_wait()?.and_then(|found| found.live(readiness::deployment));
        Ok(health((servers(name), set), (sentinels(name), deployment)))
    }
}

fn health(set: (String, Option<Readiness>), deployment: (String, Option<Readiness>)) -> Readiness {
    for (kind, (name, found)) in [("StatefulSet", set), ("Deployment", deployment)] {
        match found {
            Some(Readiness::Ready) => {}
            Some(Readiness::Waiting(why)) => return Readiness::Waiting(format!("its {kind} {name}: {why}")),
            Some(Readiness::Failed(why)) => return Readiness::Failed(format!("its {kind} {name}: {why}")),
            None => {
                return Readiness::waiting(format!(
                    "the Redis operator has not created {kind} {name} yet: if this lasts, see the logs of the Redis operator"
                ));
            }
        }
    }
    Readiness::Ready
}
