//! Validation of a HarborCluster.

use kube::Resource as _;
use serde_json::json;
use windlass_runtime::webhook::Findings;

use super::harborcluster::{CacheKind, DatabaseKind, HarborCluster, StorageKind, StorageSpec};
use super::harborcluster_parts::BuiltInVolume;
use super::names::annotation;
use super::status::Condition;
use super::status::condition::{CACHE_READY, DATABASE_READY, STORAGE_READY};
use super::syntax::size;
use super::validation::{Judged, Previous, VersionRules};
use super::validation_harbor::{common, switched_tls, together};

/// Minimum number of volumes of a MinIO tenant.
const MINIO_VOLUMES: i32 = 4;

impl Judged for HarborCluster {
    fn same(&self, old: &Self) -> bool {
        self.spec == old.spec
    }

    fn check(&self, versions: &dyn VersionRules, found: &mut Findings) {
        let spec = &self.spec;
        common(&spec.common, found);
        versions.check_features(&spec.common, found);
        cache(self, versions, found);
        database(self, found);
        storage(self, found);
        let files = spec
            .storage
            .as_ref()
            .is_some_and(|storage| matches!(storage.kind, StorageKind::FileSystem | StorageKind::BuiltIn));
        together(&spec.common, files, found);
    }

    fn check_change(&self, old: Option<&Self>, versions: &dyn VersionRules, found: &mut Findings) {
        let spec = &self.spec;
        let previous = old.map(|old| {
            let status = old.status.as_ref().map(|status| (&status.other, &*status.conditions));
            Previous::of(&old.spec.common, status)
        });
        versions.judge(previous.as_ref(), &spec.common, found);
        if let Some(old) = old {
            switched(old, self, found);
            resized(old, self, found);
            volumes(old, self, found);
            switched_tls(&old.spec.common, &spec.common, found);
            if spec.database.as_ref().is_some_and(|database| database.kind == DatabaseKind::BuiltIn) {
                versions.judge_built_in_database(&old.spec.common.version, &spec.common.version, found);
            }
        }
    }
}

fn cache(cluster: &HarborCluster, versions: &dyn VersionRules, found: &mut Findings) {
    use super::harborcluster::CacheKind::{BuiltIn, Redis, RedisFailover};
    let Some(cache) = &cluster.spec.cache else {
        return found.required("spec.cache", "set the kind and the settings of the cache");
    };
    match cache.kind {
        Redis if cache.spec.redis.is_none() => {
            found.required("spec.cache.spec.redis", "cache.kind is Redis: set its address");
        }
        RedisFailover if cache.spec.redis_failover.is_none() => {
            found.required(
                "spec.cache.spec.redisFailover",
                "cache.kind is RedisFailover: set it; {} is enough",
            );
        }
        Redis | RedisFailover | BuiltIn => {}
    }
    if let Some(redis) = cache.spec.redis.as_ref().filter(|_| cache.kind == Redis) {
        versions.check_redis(&cluster.spec.common.version, "spec.cache.spec.redis", redis, found);
    }
}

fn database(cluster: &HarborCluster, found: &mut Findings) {
    use super::harborcluster::DatabaseKind::{BuiltIn, PostgreSql, Zalando};
    let Some(database) = &cluster.spec.database else {
        return found.required("spec.database", "set the kind and the settings of the database");
    };
    match database.kind {
        PostgreSql if database.spec.postgresql.is_none() => {
            found.required("spec.database.spec.postgresql", "database.kind is PostgreSQL: set its address");
        }
        Zalando if database.spec.zalando.is_none() => {
            found.required(
                "spec.database.spec.zlandoPostgreSql",
                "database.kind is Zlando/PostgreSQL: set it; {} is enough",
            );
        }
        PostgreSql | Zalando | BuiltIn => {}
    }
}

fn storage(cluster: &HarborCluster, found: &mut Findings) {
    let Some(storage) = &cluster.spec.storage else {
        return found.required("spec.storage", "set the storage of images");
    };
    if !has_settings(storage.kind, &storage.spec) {
        let field = format!("spec.storage.spec.{}", storage.kind.field());
        found.required(field, format!("storage.kind is {}: set its settings here", storage.kind));
    }
    let Some(minio) = storage.spec.minio.as_ref().filter(|_| storage.kind == StorageKind::MinIo) else {
        return;
    };
    let volumes = minio.replicas.saturating_mul(minio.volumes_per_server);
    if volumes < MINIO_VOLUMES {
        let remedy = format!(
            "replicas {} * volumesPerServer {} is below the {MINIO_VOLUMES} volumes that MinIO needs: raise one of them",
            minio.replicas, minio.volumes_per_server
        );
        found.invalid("spec.storage.spec.minIO", volumes, remedy);
    }
    if let Some(redirect) = storage.spec.redirect().filter(|redirect| redirect.enable) {
        let place = if storage.spec.redirect.is_some() { "redirect" } else { "minIO.redirect" };
        if redirect.expose.as_ref().is_none_or(|expose| expose.ingress.is_none()) {
            found.required(
                format!("spec.storage.spec.{place}.expose.ingress"),
                "downloads are redirected to MinIO: set the host name that clients use, or set enable to false",
            );
        }
    }
}

fn has_settings(kind: StorageKind, spec: &StorageSpec) -> bool {
    match kind {
        StorageKind::MinIo => spec.minio.is_some(),
        StorageKind::S3 => spec.s3.is_some(),
        StorageKind::Swift => spec.swift.is_some(),
        StorageKind::FileSystem => spec.file_system.is_some(),
        StorageKind::Azure => spec.azure.is_some(),
        StorageKind::Gcs => spec.gcs.is_some(),
        StorageKind::Oss => spec.oss.is_some(),
        StorageKind::BuiltIn => true,
    }
}

/// Reports a change of kind, because the data of a database, cache or storage does not follow it.
fn switched(old: &HarborCluster, new: &HarborCluster, found: &mut Findings) {
    let moved = new.meta().annotations.as_ref().and_then(|all| all.get(annotation::DATA_MOVED));
    let moved = |part: &str| moved.is_some_and(|parts| parts.split(',').any(|named| named.trim() == part));
    let kinds = |cluster: &HarborCluster| {
        let spec = &cluster.spec;
        [
            ("cache", spec.cache.as_ref().map(|part| part.kind.as_str())),
            ("database", spec.database.as_ref().map(|part| part.kind.as_str())),
            ("storage", spec.storage.as_ref().map(|part| part.kind.as_str())),
        ]
    };
    for ((part, old), (_, new)) in kinds(old).into_iter().zip(kinds(new)) {
        let (Some(old), Some(new)) = (old, new) else { continue };
        if old != new && !moved(part) {
            let remedy = format!(
                "the data in the {part} of kind {old} would be left behind: keep {old}, or migrate the data and \
                 confirm it with the annotation {}: {part}",
                annotation::DATA_MOVED
            );
            found.invalid(format!("spec.{part}.kind"), new, remedy);
        }
    }
}

/// Reports a change of the servers or volumes of a MinIO that has been ready: MinIO cannot change the layout
/// of a pool, and would lose the data in it.
fn resized(old: &HarborCluster, new: &HarborCluster, found: &mut Findings) {
    let was_ready = was_ready(old, STORAGE_READY);
    let minio = |cluster: &HarborCluster| {
        let storage = cluster.spec.storage.as_ref().filter(|storage| storage.kind == StorageKind::MinIo)?;
        storage.spec.minio.clone()
    };
    let (true, Some(old), Some(new)) = (was_ready, minio(old), minio(new)) else { return };
    let remedy = |was: &dyn std::fmt::Display| {
        format!(
            "the servers and volumes of a MinIO that holds data cannot change: keep {was}, or create another \
             HarborCluster with the new size and replicate the images to it"
        )
    };
    let field = |name: &str| format!("spec.storage.spec.minIO.{name}");
    if old.replicas != new.replicas {
        found.invalid(field("replicas"), new.replicas, remedy(&old.replicas));
    }
    if old.volumes_per_server != new.volumes_per_server {
        found.invalid(field("volumesPerServer"), new.volumes_per_server, remedy(&old.volumes_per_server));
    }
    if old.volume_claim_template != new.volume_claim_template {
        let was = old.volume_claim_template.map_or(json!("unset"), |template| template.raw().clone());
        let is = new.volume_claim_template.map_or(json!(null), |template| template.raw().clone());
        found.invalid(field("volumeClaimTemplate"), is, remedy(&was));
    }
}

/// Returns true if the part of this condition has been ready, and may therefore hold data.
fn was_ready(cluster: &HarborCluster, condition: &str) -> bool {
    cluster.status.as_ref().is_some_and(|status| {
        let ready = |one: &Condition| one.kind == condition && one.status != "Unknown";
        status.other.contains_key("version") || status.conditions.iter().any(ready)
    })
}

/// A volume of a part: the field of its settings, the condition of the part, the settings and the default
/// size.
type Volume = (&'static str, &'static str, Option<BuiltInVolume>, &'static str);

/// Default size of the volumes that other operators claim.
const DELEGATED_SIZE: &str = "1Gi";

/// Returns the volumes of the built-in parts, and of those that other operators run; `None` for a kind that
/// is not selected. MinIO's volumes have a rule of their own.
fn claimed_volumes(cluster: &HarborCluster) -> [Volume; 5] {
    let spec = &cluster.spec;
    let cache = |kind| spec.cache.as_ref().filter(|cache| cache.kind == kind).map(|cache| &cache.spec);
    let database =
        |kind| spec.database.as_ref().filter(|database| database.kind == kind).map(|part| &part.spec);
    let storage = spec.storage.as_ref().filter(|storage| storage.kind == StorageKind::BuiltIn);
    let failover = cache(CacheKind::RedisFailover).map(|cache| {
        let server = cache.redis_failover.as_ref().and_then(|failover| failover.server.as_ref());
        BuiltInVolume {
            storage: server.and_then(|server| server.storage.clone()),
            storage_class_name: server.and_then(|server| server.storage_class_name.clone()),
        }
    });
    let zalando = database(DatabaseKind::Zalando).map(|database| {
        let servers = database.zalando.clone().unwrap_or_default();
        BuiltInVolume { storage: servers.storage, storage_class_name: servers.storage_class_name }
    });
    let cache = cache(CacheKind::BuiltIn).map(|part| part.built_in.clone().unwrap_or_default().volume);
    let database =
        database(DatabaseKind::BuiltIn).map(|part| part.built_in.clone().unwrap_or_default().volume);
    let storage = storage.map(|part| part.spec.built_in.clone().unwrap_or_default().volume);
    [
        ("spec.cache.spec.builtIn", CACHE_READY, cache, BuiltInVolume::OF_CACHE),
        ("spec.cache.spec.redisFailover.server", CACHE_READY, failover, DELEGATED_SIZE),
        ("spec.database.spec.builtIn", DATABASE_READY, database, BuiltInVolume::OF_DATABASE),
        ("spec.database.spec.zlandoPostgreSql", DATABASE_READY, zalando, DELEGATED_SIZE),
        ("spec.storage.spec.builtIn", STORAGE_READY, storage, BuiltInVolume::OF_IMAGES),
    ]
}

/// Reports changes of volumes that Kubernetes does not allow: a volume cannot shrink, and keeps its
/// StorageClass. That holds for the volumes of other operators too.
fn volumes(old: &HarborCluster, new: &HarborCluster, found: &mut Findings) {
    const INSTEAD: &str = "create another HarborCluster with the new value and move the data to it (replicate the \
                           images, restore a backup of the database)";
    for ((path, condition, was, usual), (_, _, is, _)) in
        claimed_volumes(old).into_iter().zip(claimed_volumes(new))
    {
        let (Some(was), Some(is)) = (was, is) else { continue };
        let field = |name: &str| format!("{path}.{name}");
        let shown =
            |class: &Option<String>| class.as_ref().map_or("unset".to_owned(), |class| format!("{class:?}"));
        if was.storage_class_name != is.storage_class_name && was_ready(old, condition) {
            let keep = shown(&was.storage_class_name);
            let remedy =
                format!("the volume holds data and keeps its StorageClass: leave it {keep}, or {INSTEAD}");
            found.invalid(field("storageClassName"), is.storage_class_name, remedy);
        }
        let (was, is) = (was.storage.as_deref().unwrap_or(usual), is.storage.as_deref().unwrap_or(usual));
        if let (Ok(before), Ok(after)) = (size(was), size(is))
            && after < before
        {
            let remedy = format!("a volume cannot shrink: write {was} or more, or {INSTEAD}");
            found.invalid(field("storage"), is, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::validation_harbor::tests::{base, judged, merged, object};
    use kube::ResourceExt as _;
    use serde_json::{Value, json};

    fn cluster(patch: Value) -> HarborCluster {
        let own = json!({
            "cache": {"kind": "Redis", "spec": {"redis": {"host": "redis"}}},
            "database": {"kind": "PostgreSQL", "spec": {"postgresql": {"hosts": [{"host": "db"}]}}},
            "storage": {"kind": "BuiltIn", "spec": {}},
        });
        object(merged(merged(base(), own), patch))
    }

    #[test]
    fn valid_objects_are_accepted() {
        assert_eq!(judged(None, &cluster(json!({}))), "");
    }

    #[test]
    fn a_kind_needs_its_own_settings_and_ignores_those_of_others() {
        let kept = json!({"cache": {"kind": "RedisFailover", "spec": {"redisFailover": {}}}});
        assert_eq!(judged(None, &cluster(kept)), "", "the external Redis is still there, and does nothing");
        let minio = |replicas: i32, redirect: Value| {
            let spec = json!({"minIO": {"replicas": replicas, "volumesPerServer": 1, "redirect": redirect}});
            cluster(json!({"storage": {"kind": "MinIO", "spec": spec}}))
        };
        let found = judged(None, &minio(3, Value::Null));
        assert!(found.contains("replicas 3 * volumesPerServer 1 is below the 4"), "{found}");
        assert_eq!(judged(None, &minio(4, json!({"enable": false}))), "");
        let found = judged(None, &minio(4, json!({"enable": true})));
        assert!(found.contains("spec.storage.spec.minIO.redirect.expose.ingress"), "{found}");
        let found = judged(None, &cluster(json!({"storage": {"kind": "FileSystem"}})));
        assert!(found.contains("spec.storage.spec.fileSystem"), "{found}");
    }

    /// Returns a HarborCluster with a built-in part that has this volume; `ready` is its condition.
    fn with_volume(part: &str, volume: &Value, ready: &str) -> HarborCluster {
        let mut cluster = cluster(json!({part: {"kind": "BuiltIn", "spec": {"builtIn": volume}}}));
        let condition = match part {
            "cache" => "CacheReady",
            "database" => "DatabaseReady",
            _ => "StorageReady",
        };
        let status = json!({"conditions": [{"type": condition, "status": ready}]});
        cluster.status = serde_json::from_value(status).unwrap();
        cluster
    }

    #[test]
    fn users_n6_the_class_of_a_volume_with_data_is_refused_with_what_to_do_instead() {
        let (unset, fast, slow) =
            (json!({}), json!({"storageClassName": "fast"}), json!({"storageClassName": "slow"}));
        for part in ["cache", "database", "storage"] {
            let judge = |old: &Value, new: &Value, ready: &str| {
                judged(Some(&with_volume(part, old, ready)), &with_volume(part, new, ready))
            };
            for (old, new) in [(&fast, &slow), (&unset, &fast), (&fast, &unset)] {
                let found = judge(old, new, "True");
                let field = format!("spec.{part}.spec.builtIn.storageClassName");
                for expected in [&*field, "keeps its StorageClass", "another HarborCluster"] {
                    assert!(found.contains(expected), "{expected} in {found}");
                }
                assert!(!found.contains("delete"), "no advice to delete data: {found}");
                assert_eq!(judge(old, new, "Unknown"), "", "there is no data yet");
            }
            assert_eq!(judge(&fast, &fast, "True"), "");
        }
    }

    #[test]
    fn users_n13_a_volume_that_shrinks_is_refused_and_one_that_grows_is_not() {
        for (part, usual, less, more) in [
            ("cache", "1Gi", "512Mi", "2Gi"),
            ("database", "10Gi", "9Gi", "11Gi"),
            ("storage", "50Gi", "50G", "1Ti"),
        ] {
            let judge = |old: &Value, new: &Value| {
                judged(Some(&with_volume(part, old, "Unknown")), &with_volume(part, new, "Unknown"))
            };
            let of = |size: &str| json!({"storage": size});
            let field = format!("spec.{part}.spec.builtIn.storage");
            for (old, new) in [(json!({}), of(less)), (of(more), json!({})), (of(usual), of(less))] {
                let found = judge(&old, &new);
                assert!(found.contains(&field) && found.contains("cannot shrink"), "{old} {new}: {found}");
            }
            for (old, new) in [(json!({}), of(more)), (of(less), json!({})), (json!({}), of(usual))] {
                assert_eq!(judge(&old, &new), "", "{old} {new}");
            }
        }
    }

    /// Returns a HarborCluster whose cache or database another operator runs, with this volume; `ready` is
    /// its condition.
    fn with_delegated_volume(part: &str, volume: &Value, ready: &str) -> HarborCluster {
        let (kind, spec, condition) = match part {
            "cache" => ("RedisFailover", json!({"redisFailover": {"server": volume}}), "CacheReady"),
            _ => ("Zlando/PostgreSQL", json!({"zlandoPostgreSql": volume}), "DatabaseReady"),
        };
        let mut cluster = cluster(json!({part: {"kind": kind, "spec": spec}}));
        let status = json!({"conditions": [{"type": condition, "status": ready}]});
        cluster.status = serde_json::from_value(status).unwrap();
        cluster
    }

    const DELEGATED: [(&str, &str); 2] = [
        ("cache", "spec.cache.spec.redisFailover.server"),
        ("database", "spec.database.spec.zlandoPostgreSql"),
    ];

    #[test]
    fn users_n6_the_class_of_a_volume_of_another_operator_is_refused_with_what_to_do_instead() {
        let (unset, fast, slow) =
            (json!({}), json!({"storageClassName": "fast"}), json!({"storageClassName": "slow"}));
        for (part, path) in DELEGATED {
            let judge = |old: &Value, new: &Value, ready: &str| {
                let with = |volume: &Value| with_delegated_volume(part, volume, ready);
                judged(Some(&with(old)), &with(new))
            };
            for (old, new) in [(&fast, &slow), (&unset, &fast), (&fast, &unset)] {
                let found = judge(old, new, "True");
                let field = format!("{path}.storageClassName");
                for expected in [&*field, "keeps its StorageClass", "another HarborCluster"] {
                    assert!(found.contains(expected), "{expected} in {found}");
                }
                assert!(!found.contains("delete"), "no advice to delete data: {found}");
                assert_eq!(judge(old, new, "Unknown"), "", "there is no data yet");
            }
            assert_eq!(judge(&fast, &fast, "True"), "");
        }
    }

    #[test]
    fn users_n13_a_volume_of_another_operator_that_shrinks_is_refused_and_one_that_grows_is_not() {
        let of = |size: &str| json!({"storage": size});
        for (part, path) in DELEGATED {
            let judge = |old: &Value, new: &Value| {
                let with = |volume: &Value| with_delegated_volume(part, volume, "True");
                judged(Some(&with(old)), &with(new))
            };
            for (old, new) in [(json!({}), of("512Mi")), (of("2Gi"), json!({})), (of("5Gi"), of("4Gi"))] {
                let found = judge(&old, &new);
                let field = format!("{path}.storage");
                assert!(found.contains(&field) && found.contains("cannot shrink"), "{old} {new}: {found}");
            }
            for (old, new) in [(json!({}), of("2Gi")), (of("512Mi"), json!({})), (json!({}), of("1024Mi"))] {
                assert_eq!(judge(&old, &new), "", "{old} {new}");
            }
        }
    }

    #[test]
    fn users_n13_bad_values_of_the_stored_object_do_not_block_other_changes() {
        let bad =
            with_volume("database", &json!({"storage": "ten gigs", "storageClassName": "Fast SSD"}), "True");
        let found = judged(None, &bad);
        for part in ["spec.database.spec.builtIn.storage\"", "ten gigs", "10Gi", "Fast SSD"] {
            assert!(found.contains(part), "{part} in {found}");
        }
        let mut edited = bad.clone();
        edited.spec.common.external_url = "https://other.example.com".into();
        assert_eq!(judged(Some(&bad), &edited), "");
        let mut mended = bad.clone();
        let volume = &mut mended.spec.database.as_mut().unwrap().spec.built_in.as_mut().unwrap().volume;
        volume.storage = Some("10Gi".into());
        assert_eq!(judged(Some(&bad), &mended), "", "there was no size to shrink from");
    }

    #[test]
    fn users_a_change_of_internal_tls_on_an_existing_cluster_gives_a_warning() {
        let with = |enabled: bool| cluster(json!({"internalTLS": {"enabled": enabled}}));
        for (old, new, expected) in [(false, true, true), (true, false, true), (true, true, false)] {
            let mut found = Findings::default();
            switched_tls(&with(old).spec.common, &with(new).spec.common, &mut found);
            assert_eq!(format!("{found:?}").contains("spec.internalTLS.enabled"), expected);
            assert_eq!(judged(Some(&with(old)), &with(new)), "", "a warning only");
        }
    }

    #[test]
    fn a_kind_changes_only_with_the_annotation_that_data_was_moved() {
        let old = cluster(json!({}));
        let mut new = cluster(json!({"database": {"kind": "BuiltIn"}}));
        let found = judged(Some(&old), &new);
        assert!(
            found.contains("spec.database.kind")
                && found.contains("harbor.windlass.dev/data-moved: database"),
            "{found}"
        );
        new.annotations_mut().insert(annotation::DATA_MOVED.into(), "cache, database".into());
        assert_eq!(judged(Some(&old), &new), "");
    }

    #[test]
    fn seam_m9_servers_and_volumes_of_a_live_minio_are_refused_with_field_value_and_remedy() {
        let with = |minio: Value, ready: &str| {
            let storage = json!({"storage": {"kind": "MinIO", "spec": {"minIO": minio}}});
            let mut cluster = cluster(storage);
            let status = json!({"conditions": [{"type": "StorageReady", "status": ready}]});
            cluster.status = serde_json::from_value(status).unwrap();
            cluster
        };
        let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let base = json!({"replicas": 4, "volumesPerServer": 1, "volumeClaimTemplate": claim("10Gi")});
        for (change, field, value) in [
            (json!({"replicas": 6}), "spec.storage.spec.minIO.replicas", "Invalid value: 6"),
            (json!({"volumesPerServer": 2}), "spec.storage.spec.minIO.volumesPerServer", "Invalid value: 2"),
            (
                json!({"volumeClaimTemplate": claim("20Gi")}),
                "spec.storage.spec.minIO.volumeClaimTemplate",
                "20Gi",
            ),
        ] {
            let new = merged(base.clone(), change);
            let found = judged(Some(&with(base.clone(), "True")), &with(new.clone(), "True"));
            for part in [field, value, "another HarborCluster"] {
                assert!(found.contains(part), "{part} in {found}");
            }
            let never_ready = judged(Some(&with(base.clone(), "Unknown")), &with(new, "Unknown"));
            assert_eq!(never_ready, "", "there is no data yet");
        }
        let other = merged(base.clone(), json!({"image": "minio/minio:x"}));
        assert_eq!(judged(Some(&with(base, "True")), &with(other, "True")), "", "the rest can be edited");
    }
}
