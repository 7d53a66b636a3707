//! The plan of a HarborCluster: cache, database and storage first, then the Harbor that uses them.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use serde_json::Value;
use windlass::live::Live;
use windlass::{
    Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanError, PlanState, Readiness, Takeover, readiness,
};

use crate::api::driver::{ImageChartStorage, StorageRedirect};
use crate::api::harborcluster::{CacheKind, ClusterStorage, DatabaseKind, StorageKind};
use crate::api::names::blueprint;
use crate::api::postgres::HarborDatabase;
use crate::api::redis::RedisHost;
use crate::api::{Harbor, HarborCluster};
use crate::catalogue::Release;
use crate::settings::HarborSettings;
use crate::{takeover, wiring};

use super::delegated::{Postgresql, RedisFailover, Tenant};
use super::{Dependency, Site, built_in, child, delegated, status};

/// The plan of a HarborCluster.
#[derive(Clone, Debug, Default)]
pub struct HarborClusterBlueprint {
    settings: HarborSettings,
}

impl HarborClusterBlueprint {
    /// Name of the controller in settings.
    pub(crate) const CONTROLLER: &'static str = crate::settings::HARBOR_CLUSTER;

    /// Returns the blueprint with the operator's settings.
    pub fn new(settings: HarborSettings) -> Self {
        Self { settings }
    }
}

impl Controls for HarborClusterBlueprint {
    type Owner = HarborCluster;
    const NAME: &'static str = blueprint::HARBOR_CLUSTER;
    /// The garbage collector deletes the objects of a HarborCluster by their owner references; objects that
    /// hold data have none unless the spec says to delete them. Nothing has to be undone, so a HarborCluster
    /// can be deleted without the operator.
    const DELETION: Deletion<HarborCluster> = Deletion::NoLongerOrdered;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Harbor>().owns::<Secret>();
        kinds.owns::<StatefulSet>().owns::<Service>().owns::<PersistentVolumeClaim>().owns::<ConfigMap>();
        kinds
            .owns_if_installed::<RedisFailover>()
            .owns_if_installed::<Postgresql>()
            .owns_if_installed::<Tenant>();
        kinds.owns::<Job>().owns::<Ingress>().owns::<NetworkPolicy>();
        kinds.requires::<StatefulSet>().requires::<Deployment>().requires::<Secret>();
        kinds.requires::<PersistentVolumeClaim>();
        kinds.requires::<RedisFailover>().requires::<Postgresql>().requires::<Tenant>();
    }

    fn status(&self, cluster: &HarborCluster, seen: &PlanState<'_>) -> Option<Value> {
        Some(status::of(cluster, seen))
    }

    fn takeover(&self) -> Takeover<HarborCluster> {
        takeover::from_upstream()
    }
}

impl Blueprint for HarborClusterBlueprint {
    fn draw(&self, cluster: &HarborCluster, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let site = Site::of(cluster, &self.settings).with_retained_data(needs)?;
        // All three are requested before the first `?`, so that one round reads everything.
        let (cache, database, storage) =
            (cache(&site, needs, plan), database(&site, needs, plan), storage(&site, needs, plan));
        let (cache, database, storage) = (cache?, database?, storage?);
        let harbor = match (cache.settings, database.settings, storage.settings) {
            (Ok(redis), Ok(postgres), Ok(store)) => plan.add(child::harbor(&site, redis, postgres, store)),
            (Err(why), ..) | (_, Err(why), _) | (.., Err(why)) => {
                plan.pending::<Harbor>(site.names.harbor(), why)
            }
        };
        let harbor = harbor
            .ready_when(|live: &Live| match live.status.condition("Ready") {
                Some(_) => readiness::by_conditions(live),
                None => Readiness::waiting("its controller has not reconciled it yet"),
            })
            .after(cache.needs)
            .after(database.needs)
            .after(storage.needs);
        if site.has_built_in_database() {
            let version = site.common().version.clone();
            plan.record::<PersistentVolumeClaim>(site.names.database(), version).behind([&harbor]);
        }
        Ok(())
    }
}

fn lacks(field: &str) -> PlanError {
    PlanError::new(format!("spec.{field} is missing: set it"))
}

fn cache(site: &Site<'_>, needs: &Needs<'_>, plan: &mut Plan) -> Result<Dependency<RedisHost>, PlanError> {
    let cache = site.cluster.spec.cache.as_ref().ok_or_else(|| lacks("cache"))?;
    match cache.kind {
        CacheKind::Redis => {
            let redis = cache.spec.redis.clone().ok_or_else(|| lacks("cache.spec.redis"))?;
            // A version that cannot be parsed is an error of the Harbor.
            let release = site.common().version.parse().ok().and_then(|version| Release::of(&version).ok());
            let field = "spec.cache.spec.redis";
            let advice = release.and_then(|release| wiring::ignored_certificate(field, &redis, &release));
            if let Some(advice) = advice {
                plan.advise(advice);
            }
            Ok(Dependency::external(redis))
        }
        CacheKind::RedisFailover => delegated::cache(site, needs, plan),
        CacheKind::BuiltIn => built_in::cache(site, needs, plan),
    }
}

fn database(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<HarborDatabase>, PlanError> {
    let database = site.cluster.spec.database.as_ref().ok_or_else(|| lacks("database"))?;
    match database.kind {
        DatabaseKind::PostgreSql => {
            let postgres = database.spec.postgresql.clone();
            Ok(Dependency::external(postgres.ok_or_else(|| lacks("database.spec.postgresql"))?))
        }
        DatabaseKind::Zalando => delegated::database(site, needs, plan),
        DatabaseKind::BuiltIn => built_in::database(site, needs, plan),
    }
}

fn storage(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<ImageChartStorage>, PlanError> {
    let storage = site.cluster.spec.storage.as_ref().ok_or_else(|| lacks("storage"))?;
    match storage.kind {
        StorageKind::MinIo => delegated::storage(site, needs, plan),
        StorageKind::BuiltIn => built_in::storage(site, needs, plan),
        _ => Ok(Dependency::external(external_storage(storage)?)),
    }
}

/// Returns the external storage of the spec. Only the settings of the chosen kind are used.
fn external_storage(storage: &ClusterStorage) -> Result<ImageChartStorage, PlanError> {
    let (kind, spec) = (storage.kind, &storage.spec);
    let redirect = spec.redirect.as_ref().map(|redirect| StorageRedirect { disable: !redirect.enable });
    let of = |wanted: StorageKind| kind == wanted;
    let store = ImageChartStorage {
        redirect,
        filesystem: spec.file_system.clone().filter(|_| of(StorageKind::FileSystem)),
        s3: spec.s3.clone().filter(|_| of(StorageKind::S3)),
        swift: spec.swift.clone().filter(|_| of(StorageKind::Swift)),
        azure: spec.azure.clone().filter(|_| of(StorageKind::Azure)),
        gcs: spec.gcs.clone().filter(|_| of(StorageKind::Gcs)),
        oss: spec.oss.clone().filter(|_| of(StorageKind::Oss)),
    };
    match store.store() {
        Some(_) => Ok(store),
        None => Err(lacks(&format!("storage.spec.{}", kind.field()))),
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use serde_json::json;

    /// Returns a HarborCluster with this cache, database and storage.
    pub(crate) fn cluster(cache: Value, database: Value, storage: Value) -> HarborCluster {
        let object = json!({
            "apiVersion": "goharbor.io/v1beta1", "kind": "HarborCluster",
            "metadata": {"name": "sample", "namespace": "registry"},
            "spec": {
                "externalURL": "https://harbor.example.com",
                "harborAdminPasswordRef": "admin",
                "version": "2.15.2",
                "expose": {"core": {"ingress": {"host": "harbor.example.com"}, "tls": {"certificateRef": "public"}}},
                "portal": {},
                "cache": cache, "database": database, "storage": storage,
            },
        });
        serde_json::from_value(object).unwrap()
    }

    /// Returns a HarborCluster with external dependencies.
    pub(crate) fn external() -> HarborCluster {
        cluster(
            json!({"kind": "Redis", "spec": {"redis": {"host": "redis", "passwordRef": "redis"}}}),
            json!({"kind": "PostgreSQL", "spec": {"postgresql": {
                "hosts": [{"host": "db"}], "username": "harbor", "passwordRef": "db", "sslMode": "disable"}}}),
            json!({"kind": "S3", "spec": {
                "s3": {"region": "here", "bucket": "images", "accesskey": "key", "secretkeyRef": "s3", "certificateRef": "s3-ca"},
                "redirect": {"enable": false},
                "fileSystem": {"registryPersistentVolume": {"claimName": "ignored"}}}}),
        )
    }

    /// Returns a HarborCluster with built-in dependencies.
    pub(crate) fn built_in() -> HarborCluster {
        cluster(
            json!({"kind": "BuiltIn", "spec": {}}),
            json!({"kind": "BuiltIn", "spec": {"builtIn": {"storage": "20Gi", "storageClassName": "fast",
                "resources": {"requests": {"memory": "1Gi"}}}}}),
            json!({"kind": "BuiltIn", "spec": {"builtIn": {"storage": "100Gi"}}}),
        )
    }

    /// Returns a HarborCluster whose dependencies other operators run.
    pub(crate) fn delegated() -> HarborCluster {
        cluster(
            json!({"kind": "RedisFailover", "spec": {"redisFailover": {"server": {"replicas": 2, "storage": "5Gi"}}}}),
            json!({"kind": "Zlando/PostgreSQL", "spec": {"zlandoPostgreSql": {"replicas": 2, "storage": "5Gi",
                "resources": {"limits": {"cpu": "1"}}}}}),
            json!({"kind": "MinIO", "spec": {"minIO": {"replicas": 2, "volumesPerServer": 2,
                "redirect": {"enable": true, "expose": {"ingress": {"host": "minio.example.com"}, "tls": {"certificateRef": "public"}}}}}}),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{built_in, delegated, external};
    use super::*;
    use crate::api::names::annotation;
    use serde_json::json;

    fn plan(cluster: &HarborCluster) -> String {
        windlass::preview(&HarborClusterBlueprint::default(), cluster).unwrap().text().to_string()
    }

    fn objects(cluster: &HarborCluster, there: &[Value]) -> String {
        let sketch = windlass::sketch(&HarborClusterBlueprint::default(), cluster, there).unwrap();
        let each = |object: &windlass::Desired| serde_json::to_string_pretty(object.body()).unwrap();
        let waiting = sketch.waiting.iter().map(|(id, why)| format!("waiting for {id}: {why}"));
        sketch.objects.iter().map(each).chain(waiting).collect::<Vec<_>>().join("\n---\n")
    }

    #[test]
    fn an_external_dependency_is_passed_on_unchanged() {
        insta::assert_snapshot!("plan_external", plan(&external()));
        insta::assert_snapshot!("objects_external", objects(&external(), &[]));
    }

    #[test]
    fn users_n7_a_stored_cluster_whose_release_ignores_the_certificate_of_redis_gets_advice() {
        let advice = |version: &str| {
            let mut cluster = external();
            cluster.spec.common.version = version.to_owned();
            let redis = cluster.spec.cache.as_mut().unwrap().spec.redis.as_mut().unwrap();
            redis.certificate_ref = Some("redis-ca".to_owned());
            windlass::sketch(&HarborClusterBlueprint::default(), &cluster, &[]).unwrap().advice
        };
        let found = advice("2.12.4").join("\n");
        for part in ["spec.cache.spec.redis.certificateRef", "clear text", "2.13.0"] {
            assert!(found.contains(part), "{part} in {found}");
        }
        assert!(advice("2.13.0").is_empty());
    }

    #[test]
    fn a_built_in_dependency_is_a_server_with_a_volume_and_a_password() {
        insta::assert_snapshot!("plan_built_in", plan(&built_in()));
        insta::assert_snapshot!("objects_built_in", objects(&built_in(), &[]));
    }

    #[test]
    fn servers_are_reached_at_their_ports_only_where_policies_are_wanted() {
        let mut cluster = built_in();
        let of_kind = |cluster: &HarborCluster, kind: &str| -> Vec<Value> {
            let sketch = windlass::sketch(&HarborClusterBlueprint::default(), cluster, &[]).unwrap();
            let bodies = sketch.objects.iter().map(|object| object.body().clone());
            bodies.filter(|body| body["kind"] == kind).collect()
        };
        assert_eq!(of_kind(&cluster, "NetworkPolicy"), Vec::<Value>::new());
        let asked = (annotation::NETWORK_POLICIES.to_owned(), "true".to_owned());
        cluster.metadata.annotations = Some([asked].into());
        let policies = of_kind(&cluster, "NetworkPolicy");
        let servers = of_kind(&cluster, "StatefulSet");
        assert_eq!((policies.len(), servers.len()), (4, 2));
        for server in &servers {
            let template = &server["spec"]["template"];
            let of_it = |policy: &&Value| {
                policy["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
            };
            let port = &template["spec"]["containers"][0]["ports"][0]["containerPort"];
            let specs: Vec<Value> =
                policies.iter().filter(of_it).map(|policy| policy["spec"].clone()).collect();
            assert_eq!(specs.len(), 2, "{server}");
            for spec in &specs {
                match spec["policyTypes"][0].as_str() {
                    Some("Ingress") => {
                        assert_eq!(spec["ingress"], json!([{"ports": [{"port": port, "protocol": "TCP"}]}]));
                    }
                    _ => assert_eq!((&spec["policyTypes"], spec.get("egress")), (&json!(["Egress"]), None)),
                }
            }
        }
    }

    #[test]
    fn a_delegated_dependency_is_an_object_of_its_operator() {
        insta::assert_snapshot!("plan_delegated", plan(&delegated()));
        let secret =
            |name: &str, data: Value| json!({"kind": "Secret", "metadata": {"name": name}, "data": data});
        let there = [
            secret("harbor.postgresql-registry-sample.credentials", json!({"password": "cGFzc3dvcmQ="})),
            secret("minio-sample-creds", json!({"accesskey": "YWNjZXNz", "secretkey": "c2VjcmV0"})),
        ];
        insta::assert_snapshot!("objects_delegated", objects(&delegated(), &there));
        let waiting = objects(&delegated(), &[]);
        let neither = "waiting for Secret sample-database-password: Zalando's operator has created neither Secret \
             harbor.postgresql-registry-sample.credentials nor Secret \
             harbor.postgresql-registry-sample.credentials.postgresql.acid.zalan.do yet";
        assert!(waiting.contains(neither), "{waiting}");
    }

    #[test]
    fn running_dependencies_are_neither_restarted_nor_downgraded() {
        let there = |kind: &str, name: &str, spec: Value| json!({"kind": kind, "metadata": {"name": name}, "spec": spec});
        let labels = json!({"app.kubernetes.io/name": "cache"});
        let claim = json!({"metadata": {"name": "sample", "labels": labels}});
        let spilo = "registry.opensource.zalan.do/acid/spilo-13:2.0-p7";
        let logins = json!(["hostssl all all 0.0.0.0/0 md5", "host    all all 0.0.0.0/0 md5"]);
        let unsaid = json!({"cpu": "0", "memory": "0"});
        let found = [
            there(
                "RedisFailover",
                "sample-redis",
                json!({"redis": {"image": "redis:6.2", "storage": {"persistentVolumeClaim": claim}}}),
            ),
            there(
                "postgresql",
                "postgresql-registry-sample",
                json!({"dockerImage": spilo, "patroni": {"pg_hba": logins}, "postgresql": {"version": "13"},
                    "resources": {"requests": unsaid, "limits": unsaid}}),
            ),
            there("Tenant", "minio-sample", json!({"image": "minio/minio:RELEASE.2023-01-02T09-40-09Z"})),
        ];
        let sketch = windlass::sketch(&HarborClusterBlueprint::default(), &delegated(), &found).unwrap();
        let spec = |kind: &str| {
            let mut all = sketch.objects.iter().map(windlass::Desired::body);
            all.find(|body| body["kind"] == kind).unwrap()["spec"].clone()
        };
        let redis = spec("RedisFailover");
        for part in ["redis", "sentinel"] {
            assert_eq!(redis[part]["image"], "redis:6.2");
        }
        let metadata = &redis["redis"]["storage"]["persistentVolumeClaim"]["metadata"];
        assert_eq!(*metadata, json!({"name": "sample", "labels": labels}));
        let postgres = spec("postgresql");
        assert_eq!(postgres["dockerImage"], spilo);
        assert_eq!(postgres["patroni"]["pg_hba"], logins);
        assert_eq!(postgres["postgresql"]["version"], "13");
        assert_eq!(
            postgres["resources"],
            json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "1", "memory": "0"}})
        );
        assert_eq!(spec("Tenant")["image"], "minio/minio:RELEASE.2023-01-02T09-40-09Z");
    }

    #[test]
    fn a8_a_dependency_without_settings_has_the_defaults() {
        let mut cluster = delegated();
        let bare = |kind: &str, field: &str| json!({"kind": kind, "spec": {field: {}}});
        cluster.spec.cache = serde_json::from_value(bare("RedisFailover", "redisFailover")).unwrap();
        cluster.spec.database =
            serde_json::from_value(bare("Zlando/PostgreSQL", "zlandoPostgreSql")).unwrap();
        let sketch = windlass::sketch(&HarborClusterBlueprint::default(), &cluster, &[]).unwrap();
        let spec = |kind: &str| {
            let mut all = sketch.objects.iter().map(windlass::Desired::body);
            all.find(|body| body["kind"] == kind).unwrap()["spec"].clone()
        };
        let redis = spec("RedisFailover");
        assert_eq!((&redis["redis"]["replicas"], &redis["sentinel"]["replicas"]), (&json!(3), &json!(3)));
        let database = spec("postgresql");
        assert_eq!((&database["numberOfInstances"], &database["volume"]["size"]), (&json!(3), &json!("1Gi")));
    }

    #[test]
    fn a15_no_password_is_outside_of_a_secret() {
        let there =
            [json!({"kind": "Secret", "metadata": {"name": "harbor.postgresql-registry-sample.credentials"},
            "data": {"password": "aHVudGVyMg=="}})];
        let sketch = windlass::sketch(&HarborClusterBlueprint::default(), &delegated(), &there).unwrap();
        let with: Vec<&Value> = sketch
            .objects
            .iter()
            .map(windlass::Desired::body)
            .filter(|body| body.to_string().contains("aHVudGVyMg==") || body.to_string().contains("hunter2"))
            .collect();
        assert_eq!(with.len(), 1);
        assert_eq!(with[0]["kind"], "Secret");
    }

    #[test]
    fn data_and_its_passwords_are_kept_unless_the_cluster_says_otherwise() {
        let kept = |cluster: &HarborCluster| -> Vec<String> {
            let plan = plan(cluster);
            let retained = plan.lines().filter(|line| line.contains("retained"));
            let name = |line: &str| {
                let node = line.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
                node.split(": ").next().unwrap_or_default().to_owned()
            };
            let mut all: Vec<String> = retained.map(name).collect();
            all.sort();
            all.dedup();
            all
        };
        let built = [
            "PersistentVolumeClaim sample-database",
            "PersistentVolumeClaim sample-redis",
            "PersistentVolumeClaim sample-registry",
            "Secret sample-database-password",
            "Secret sample-redis",
        ];
        assert_eq!(kept(&built_in()), built);
        let delegated_parts = [
            "Secret minio-sample",
            "Secret minio-sample-creds",
            "Secret sample-redis",
            "Tenant minio-sample",
            "postgresql postgresql-registry-sample",
        ];
        assert_eq!(kept(&delegated()), delegated_parts);
        for made in [built_in, delegated] {
            let mut cluster = made();
            cluster.spec.common.deletion_policy = Some(crate::api::harbor::DeletionPolicy::Delete);
            assert!(kept(&cluster).is_empty());
        }
    }

    #[test]
    fn database_settings_of_the_operator_reach_the_databases() {
        let settings =
            [("postgresql-max-connections", "77"), ("postgres-secrets-template", "{cluster}-{username}")];
        let blueprint = HarborClusterBlueprint::new(HarborSettings::default().with(settings).unwrap());
        let drawn = |cluster: &HarborCluster| {
            let sketch = windlass::sketch(&blueprint, cluster, &[]).unwrap();
            let objects: Vec<&Value> = sketch.objects.iter().map(windlass::Desired::body).collect();
            format!("{} {:?}", json!(objects), sketch.waiting)
        };
        let zalando = drawn(&delegated());
        assert!(zalando.contains(r#""max_connections":"77""#), "{zalando}");
        assert!(zalando.contains("Secret postgresql-registry-sample-harbor nor"), "{zalando}");
        let own = drawn(&built_in());
        assert!(own.contains(r#"{"name":"POSTGRES_MAX_CONNECTIONS","value":"77"}"#), "{own}");
    }

    #[test]
    fn the_first_database_is_created_once_and_does_not_block_the_upgrade_of_an_older_major() {
        let sketch = windlass::sketch(&HarborClusterBlueprint::default(), &built_in(), &[]).unwrap();
        let body = |kind: &str, name: &str| {
            let mut all = sketch.objects.iter().map(windlass::Desired::body);
            all.find(|body| body["kind"] == kind && body["metadata"]["name"] == name).unwrap().clone()
        };
        let set = body("StatefulSet", "sample-database");
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        // The image creates this database whenever it initialises a data directory. During an upgrade to a
        // new major it would create it too, and the upgrade would fail.
        assert!(!container["env"].to_string().contains("POSTGRES_DB"), "{container}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        let at_first = mounts.iter().find(|mount| mount["subPath"] == "core.sql").unwrap();
        assert_eq!(at_first["mountPath"], "/docker-entrypoint-initdb.d/core.sql");
        let file = &body("ConfigMap", "sample-database-init")["data"]["core.sql"];
        assert_eq!(file, "CREATE DATABASE core;\n");
    }

    #[test]
    fn images_come_from_the_repository_of_the_spec_or_of_the_settings() {
        let images = |cluster: &HarborCluster| -> Vec<String> {
            let text = objects(cluster, &[]);
            let of =
                text.lines().filter(|line| line.contains("\"image\":") || line.contains("\"dockerImage\":"));
            of.map(|line| line.split('"').nth(3).unwrap_or_default().to_owned()).collect()
        };
        let mut cluster = delegated();
        cluster.spec.common.image_source =
            serde_json::from_value(json!({"repository": "mirror.example/x"})).unwrap();
        assert!(
            images(&cluster).iter().all(|image| image.starts_with("mirror.example/x/")),
            "{:?}",
            images(&cluster)
        );
        let mut cluster = built_in();
        cluster.spec.common.version = "2.6.2".into();
        assert!(
            images(&cluster).contains(&"goharbor/redis-photon:v2.6.2".to_owned()),
            "{:?}",
            images(&cluster)
        );
    }

    #[test]
    fn an_upgrade_that_is_not_allowed_does_not_reach_the_database() {
        let mut cluster = built_in();
        cluster.status = serde_json::from_value(json!({"version": "2.10.3"})).unwrap();
        let error = windlass::preview(&HarborClusterBlueprint::default(), &cluster).unwrap_err().to_string();
        assert!(error.contains("2.10.3") && error.contains("2.15.2"), "{error}");
    }

    #[test]
    fn drawing_twice_gives_the_same() {
        for made in [external, built_in, delegated] {
            let cluster = made();
            assert_eq!(objects(&cluster, &[]), objects(&cluster, &[]));
        }
    }

    #[test]
    fn a_cluster_of_the_older_version_without_a_cache_says_what_is_missing() {
        let mut cluster = external();
        cluster.spec.cache = None;
        let error = windlass::preview(&HarborClusterBlueprint::default(), &cluster).unwrap_err().to_string();
        assert_eq!(error, "spec.cache is missing: set it");
    }

    #[test]
    fn b17_the_class_and_the_network_policy_annotation_reach_the_harbor() {
        let mut cluster = external();
        let class: std::collections::BTreeMap<String, String> = [
            ("goharbor.io/harbor-class".to_owned(), "blue".to_owned()),
            ("goharbor.io/network-policies".to_owned(), "true".to_owned()),
            ("other".to_owned(), "x".to_owned()),
        ]
        .into();
        cluster.metadata.annotations = Some(class);
        let sketch = windlass::sketch(&HarborClusterBlueprint::default(), &cluster, &[]).unwrap();
        let annotations = &sketch.objects[0].body()["metadata"]["annotations"];
        assert_eq!(annotations["goharbor.io/harbor-class"], "blue");
        assert_eq!(annotations["goharbor.io/network-policies"], "true");
        assert_eq!(annotations.get("other"), None);
    }
}
