//! Validation of a HarborCluster.

use kube::Resource as _;
use windlass_runtime::webhook::Findings;

use super::harborcluster::{HarborCluster, StorageKind, StorageSpec};
use super::names::annotation;
use super::validation::{Judged, VersionRules};
use super::validation_harbor::{common, together};

/// Minimum number of volumes of a MinIO tenant.
const MINIO_VOLUMES: i32 = 4;

impl Judged for HarborCluster {
    fn same(&self, old: &Self) -> bool {
        self.spec == old.spec
    }

    fn judge(&self, old: Option<&Self>, versions: &dyn VersionRules, found: &mut Findings) {
        let spec = &self.spec;
        common(old.map(|old| &old.spec.common), &spec.common, versions, found);
        cache(self, found);
        database(self, found);
        storage(self, found);
        let files = spec
            .storage
            .as_ref()
            .is_some_and(|storage| matches!(storage.kind, StorageKind::FileSystem | StorageKind::BuiltIn));
        together(&spec.common, files, found);
        if let Some(old) = old {
            switched(old, self, found);
        }
    }
}

fn cache(cluster: &HarborCluster, found: &mut Findings) {
    use super::harborcluster::CacheKind::{BuiltIn, Redis, RedisFailover};
    let Some(cache) = &cluster.spec.cache else {
        return found.required("spec.cache", "say which Redis is used");
    };
    match cache.kind {
        Redis if cache.spec.redis.is_none() => {
            found.required("spec.cache.spec.redis", "cache.kind is Redis: say where it is");
        }
        RedisFailover if cache.spec.redis_failover.is_none() => {
            found.required(
                "spec.cache.spec.redisFailover",
                "cache.kind is RedisFailover: give it, {} will do",
            );
        }
        Redis | RedisFailover | BuiltIn => {}
    }
}

fn database(cluster: &HarborCluster, found: &mut Findings) {
    use super::harborcluster::DatabaseKind::{BuiltIn, PostgreSql, Zalando};
    let Some(database) = &cluster.spec.database else {
        return found.required("spec.database", "say which PostgreSQL is used");
    };
    match database.kind {
        PostgreSql if database.spec.postgresql.is_none() => {
            found.required("spec.database.spec.postgresql", "database.kind is PostgreSQL: say where it is");
        }
        Zalando if database.spec.zalando.is_none() => {
            found.required(
                "spec.database.spec.zlandoPostgreSql",
                "database.kind is Zlando/PostgreSQL: give it, {} will do",
            );
        }
        PostgreSql | Zalando | BuiltIn => {}
    }
}

fn storage(cluster: &HarborCluster, found: &mut Findings) {
    let Some(storage) = &cluster.spec.storage else {
        return found.required("spec.storage", "say where images are stored");
    };
    if !given(storage.kind, &storage.spec) {
        let field = format!("spec.storage.spec.{}", storage.kind.field());
        found.required(field, format!("storage.kind is {}: fill it in", storage.kind));
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
                "downloads are redirected to MinIO: say under which host users reach it, or set enable to false",
            );
        }
    }
}

fn given(kind: StorageKind, spec: &StorageSpec) -> bool {
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
                "what is in the {part} of kind {old} would be left behind: keep {old}, or move it and say so with the \
                 annotation {}: {part}",
                annotation::DATA_MOVED
            );
            found.invalid(format!("spec.{part}.kind"), new, remedy);
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
    fn what_is_right_is_not_found_fault_with() {
        assert_eq!(judged(None, &cluster(json!({}))), "");
    }

    #[test]
    fn a_kind_needs_what_belongs_to_it_and_the_rest_is_ignored() {
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

    #[test]
    fn a_kind_is_switched_only_by_who_says_that_data_was_moved() {
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
}
