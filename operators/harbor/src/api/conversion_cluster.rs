//! Conversion of a HarborCluster's database, cache and storage.
//!
//! `v1alpha3` lists external backends like a Harbor, next to backends that other operators run; the latter
//! take precedence. `v1beta1` has a kind and the settings of that kind. Only the settings in use are
//! converted; the rest becomes a residue.

use serde_json::{Map, Value, json};

type Fields = Map<String, Value>;

/// Storage backends of both versions: the kind, the field in `v1beta1`, and the field in `v1alpha3`.
const STORES: [(&str, &str, &str); 6] = [
    ("S3", "s3", "s3"),
    ("Swift", "swift", "swift"),
    ("FileSystem", "fileSystem", "filesystem"),
    ("Azure", "azure", "azure"),
    ("Gcs", "gcs", "gcs"),
    ("Oss", "oss", "oss"),
];

/// Field for the version of another operator. `v1beta1` requires it and no code reads it.
const OPERATOR_VERSION: &str = "operatorVersion";

/// Converts a spec from `v1alpha3` to `v1beta1`.
pub(super) fn to_new(old: &Value) -> Value {
    let Value::Object(old) = old else { return old.clone() };
    let mut new = old.clone();
    for field in
        ["inClusterCache", "redis", "inClusterDatabase", "database", "inClusterStorage", "imageChartStorage"]
    {
        new.remove(field);
    }
    let part = |kind: &str, field: &str, spec: Fields| json!({"kind": kind, "spec": {field: spec}});
    let run_by = |outer: &str, inner: &str, version: &str| {
        let mut spec = fields(old.get(outer)?.get(inner)?)?;
        spec.entry(OPERATOR_VERSION).or_insert_with(|| version.into());
        Some(spec)
    };
    let section = |field: &str| fields(old.get(field)?);

    let cache = run_by("inClusterCache", "redisSpec", "1.0.0")
        .map(|spec| part("RedisFailover", "redisFailover", spec))
        .or_else(|| Some(part("Redis", "redis", section("redis")?)));
    let database = run_by("inClusterDatabase", "postgresSqlSpec", "1.5.0")
        .map(|spec| part("Zlando/PostgreSQL", "zlandoPostgreSql", spec))
        .or_else(|| Some(part("PostgreSQL", "postgresql", section("database")?)));
    let storage = run_by("inClusterStorage", "minIOSpec", "4.0.6")
        .map(|mut minio| {
            let redirect = minio.remove("redirect");
            with(part("MinIO", "minIO", minio), redirect)
        })
        .or_else(|| external_storage(&section("imageChartStorage")?));
    for (field, part) in [("cache", cache), ("database", database), ("storage", storage)] {
        new.extend(part.map(|part| (field.to_owned(), part)));
    }
    Value::Object(new)
}

/// Adds the redirect settings to a storage backend.
fn with(mut part: Value, redirect: Option<Value>) -> Value {
    if let (Some(redirect), Some(Value::Object(spec))) = (redirect, part.get_mut("spec")) {
        spec.insert("redirect".to_owned(), redirect);
    }
    part
}

fn external_storage(stores: &Fields) -> Option<Value> {
    let (kind, new, store) =
        STORES.iter().find_map(|(kind, new, old)| Some((kind, new, stores.get(*old)?.clone())))?;
    let disabled = stores.get("redirect").and_then(|redirect| redirect.get("disable")?.as_bool());
    let redirect = disabled.map(|disabled| json!({"enable": !disabled}));
    Some(with(json!({"kind": kind, "spec": {*new: store}}), redirect))
}

/// Converts a spec from `v1beta1` to `v1alpha3`.
pub(super) fn to_old(new: &Value) -> Value {
    let Value::Object(new) = new else { return new.clone() };
    let mut old = new.clone();
    for field in ["cache", "database", "storage"] {
        old.remove(field);
    }
    let part = |field: &str| {
        let part = new.get(field)?;
        Some((part.get("kind")?.as_str()?, part.get("spec")?))
    };
    let mut put =
        |field: &str, value: Option<Value>| old.extend(value.map(|value| (field.to_owned(), value)));
    match part("cache") {
        Some(("RedisFailover", spec)) => put("inClusterCache", redis_failover(spec)),
        Some(("Redis", spec)) => put("redis", spec.get("redis").cloned()),
        _ => {}
    }
    match part("database") {
        Some(("Zlando/PostgreSQL", spec)) => put("inClusterDatabase", zalando(spec)),
        Some(("PostgreSQL", spec)) => put("database", spec.get("postgresql").cloned()),
        _ => {}
    }
    match part("storage") {
        Some(("MinIO", spec)) => put("inClusterStorage", minio(spec)),
        Some((kind, spec)) => put("imageChartStorage", internal_storage(kind, spec)),
        _ => {}
    }
    Value::Object(old)
}

fn redis_failover(spec: &Value) -> Option<Value> {
    let mut redis = fields(spec.get("redisFailover")?)?;
    redis.remove(OPERATOR_VERSION);
    if let Some(Value::Object(server)) = redis.get_mut("server") {
        server.remove("serviceAccountName");
    }
    Some(json!({"kind": "Redis", "redisSpec": redis}))
}

fn zalando(spec: &Value) -> Option<Value> {
    let mut postgres = fields(spec.get("zlandoPostgreSql")?)?;
    for field in [OPERATOR_VERSION, "connectTimeout", "sslConfig"] {
        postgres.remove(field);
    }
    Some(json!({"kind": "PostgresSQL", "postgresSqlSpec": postgres}))
}

/// Converts the MinIO settings with the effective of two redirect settings.
fn minio(spec: &Value) -> Option<Value> {
    let mut minio = fields(spec.get("minIO")?)?;
    minio.remove(OPERATOR_VERSION);
    let own = minio.remove("redirect");
    if let Some(redirect) = spec.get("redirect").cloned().or(own) {
        minio.insert("redirect".to_owned(), redirect);
    }
    Some(json!({"kind": "MinIO", "minIOSpec": minio}))
}

fn internal_storage(kind: &str, spec: &Value) -> Option<Value> {
    let (_, new, old) = STORES.iter().find(|(name, ..)| *name == kind)?;
    let mut stores = Fields::from_iter([((*old).to_owned(), spec.get(*new)?.clone())]);
    if let Some(enabled) = spec.get("redirect").and_then(|redirect| redirect.get("enable")?.as_bool()) {
        stores.insert("redirect".to_owned(), json!({"disable": !enabled}));
    }
    Some(Value::Object(stores))
}

fn fields(value: &Value) -> Option<Fields> {
    value.as_object().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_dependencies_are_converted() {
        let old = json!({
            "version": "2.5.0",
            "redis": {"host": "redis"},
            "database": {"hosts": [{"host": "db"}], "prefix": "x"},
            "imageChartStorage": {"filesystem": {"registryPersistentVolume": {"claimName": "a"}}, "redirect": {"disable": true}},
            "portal": {}, "registryctl": {"replicas": 2},
        });
        let new = json!({
            "version": "2.5.0",
            "cache": {"kind": "Redis", "spec": {"redis": {"host": "redis"}}},
            "database": {"kind": "PostgreSQL", "spec": {"postgresql": {"hosts": [{"host": "db"}], "prefix": "x"}}},
            "storage": {"kind": "FileSystem", "spec": {
                "fileSystem": {"registryPersistentVolume": {"claimName": "a"}},
                "redirect": {"enable": false},
            }},
            "portal": {}, "registryctl": {"replicas": 2},
        });
        assert_eq!(to_new(&old), new);
        assert_eq!(to_old(&new), old);
    }

    #[test]
    fn delegated_dependencies_take_precedence_over_external_ones() {
        let old = json!({
            "inClusterCache": {"kind": "Redis", "redisSpec": {"server": {"replicas": 1}}},
            "inClusterDatabase": {"kind": "PostgresSQL", "postgresSqlSpec": {"storage": "1Gi"}},
            "inClusterStorage": {"kind": "MinIO", "minIOSpec": {"replicas": 2, "volumesPerServer": 2}},
            "redis": {"host": "unused"},
        });
        let new = to_new(&old);
        let expected = json!({
            "cache": {"kind": "RedisFailover", "spec": {"redisFailover": {"server": {"replicas": 1}, "operatorVersion": "1.0.0"}}},
            "database": {"kind": "Zlando/PostgreSQL", "spec": {"zlandoPostgreSql": {"storage": "1Gi", "operatorVersion": "1.5.0"}}},
            "storage": {"kind": "MinIO", "spec": {"minIO": {"replicas": 2, "volumesPerServer": 2, "operatorVersion": "4.0.6"}}},
        });
        assert_eq!(new, expected);
    }

    #[test]
    fn the_effective_redirect_is_converted() {
        let storage = |redirect: Value| json!({"storage": {"kind": "MinIO", "spec": {"minIO": {"redirect": {"enable": true}}, "redirect": redirect}}});
        let redirect = |new: &Value| to_old(new)["inClusterStorage"]["minIOSpec"]["redirect"].clone();
        assert_eq!(redirect(&storage(json!({"enable": false}))), json!({"enable": false}));
        let only = json!({"storage": {"kind": "MinIO", "spec": {"minIO": {"redirect": {"enable": true}}}}});
        assert_eq!(redirect(&only), json!({"enable": true}));
        assert_eq!(to_new(&to_old(&only))["storage"]["spec"]["redirect"], json!({"enable": true}));
    }
}
