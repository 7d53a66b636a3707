//! One of each component, as a Harbor would write it, and the Secrets they name.
#![allow(dead_code)] // each test uses a part of it

pub(crate) mod world;

use harbor_operator::catalogue::{Component, Release};
use serde_json::{Value, json};

/// The name of every component.
pub(crate) const NAME: &str = "sample-harbor";

/// The kinds that are run as pods, as the catalogue calls them.
pub(crate) const KINDS: [(&str, Component); 9] = [
    ("Portal", Component::Portal),
    ("Core", Component::Core),
    ("Registry", Component::Registry),
    ("JobService", Component::JobService),
    ("Trivy", Component::Trivy),
    ("Exporter", Component::Exporter),
    ("ChartMuseum", Component::ChartMuseum),
    ("NotaryServer", Component::NotaryServer),
    ("NotarySigner", Component::NotarySigner),
];

fn secret(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// Every Secret that a component names.
pub(crate) fn secrets() -> Vec<Value> {
    let certificate = json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"});
    vec![
        secret("admin", json!({"secret": "Harbor12345"})),
        secret("csrf", json!({"key": "0123456789abcdef0123456789abcdef"})),
        secret("core-secret", json!({"secret": "core", "username": "chart_controller", "password": "core"})),
        secret("jobservice-secret", json!({"secret": "jobservice"})),
        secret("registry-basicauth", json!({"htpasswd": "harbor:hash", "secret": "harbor"})),
        secret("registry-http", json!({"REGISTRY_HTTP_SECRET": "http"})),
        secret("database", json!({"postgres-password": "database"})),
        secret("redis", json!({"redis-password": "re:dis"})),
        secret("encryption", json!({"secret": "0123456789abcdef"})),
        secret("aliases", json!({"DEFAULT": "alias"})),
        secret("github", json!({"github-token": "token"})),
        secret("extra", json!({"ca.crt": "extra"})),
        secret("token", certificate.clone()),
        secret("public", certificate.clone()),
        secret("signer", certificate.clone()),
        secret("tls", certificate.clone()),
        secret("ctl-tls", certificate),
    ]
}

/// The same as the server has them: text is encoded.
pub(crate) fn stored_secrets() -> Vec<Value> {
    let encoded = |mut secret: Value| {
        let texts = secret.as_object_mut().unwrap().remove("stringData").unwrap();
        let object: k8s_openapi::api::core::v1::Secret =
            serde_json::from_value(json!({"metadata": secret["metadata"]})).unwrap();
        let data = texts.as_object().unwrap().iter().map(|(key, text)| {
            (key.clone(), k8s_openapi::ByteString(text.as_str().unwrap().as_bytes().to_vec()))
        });
        let object = k8s_openapi::api::core::v1::Secret { data: Some(data.collect()), ..object };
        let mut stored = serde_json::to_value(object).unwrap();
        stored["kind"] = json!("Secret");
        stored
    };
    secrets().into_iter().map(encoded).collect()
}

/// The claim of the registry's images.
pub(crate) fn claim(mode: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "images"},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// The component of a kind, of a release, with internal TLS or without.
pub(crate) fn component(kind: &str, version: &str, tls: bool) -> Value {
    json!({
        "apiVersion": "goharbor.io/v1beta1",
        "kind": kind,
        "metadata": {"name": NAME, "annotations": {"harbor.goharbor.io/version": version}},
        "spec": spec(kind, version, tls),
    })
}

#[allow(clippy::too_many_lines)] // one of each
fn spec(kind: &str, version: &str, tls: bool) -> Value {
    let scheme = if tls { "https" } else { "http" };
    let url = |part: &str| format!("{scheme}://{NAME}-{part}");
    let release = Release::of(&version.parse().unwrap()).unwrap();
    let certificate = tls.then(|| json!({"certificateRef": "tls"}));
    let redis = |database: u8| json!({"host": "redis.example", "passwordRef": "redis", "database": database});
    let postgres = |name: &str| {
        json!({
            "hosts": [{"host": "db.example"}], "username": "harbor", "passwordRef": "database", "database": name,
            "parameters": {"sslmode": "prefer"},
        })
    };
    let mut core_database = postgres("core");
    core_database["encryptionKeyRef"] = json!("encryption");
    let credentials = json!({"username": "harbor_registry_user", "passwordRef": "registry-basicauth"});
    let mut spec = match kind {
        "Portal" => json!({"replicas": 2, "tls": certificate}),
        "Core" => json!({
            "replicas": 2,
            "certificateRefs": ["extra"],
            "adminInitialPasswordRef": "admin",
            "csrfKeyRef": "csrf",
            "externalEndpoint": "https://harbor.example",
            "publicCertificateRef": "public",
            "secretRef": "core-secret",
            "components": {
                "chartRepository": release.image(Component::ChartMuseum).map(|_| json!({"url": url("chartmuseum")})),
                "notaryServer": release.image(Component::NotaryServer).map(|_| json!({"url": url("notaryserver")})),
                "trivy": {"url": url("trivy"), "adapterURL": url("trivy")},
                "jobService": {"url": url("jobservice"), "secretRef": "jobservice-secret"},
                "portal": {"url": url("portal")},
                "registry": {
                    "url": url("registry"), "controllerURL": url("registryctl"), "storageProviderName": "filesystem",
                    "credentials": credentials, "redis": redis(1),
                },
                "tls": certificate,
                "tokenService": {"url": format!("{}/service/token", url("core")), "certificateRef": "token"},
            },
            "database": core_database,
            "redis": redis(0),
            "metrics": {"enabled": true},
            "proxy": {"httpProxy": "http://proxy.example:3128"},
        }),
        "JobService" => json!({
            "secretRef": "jobservice-secret",
            "core": {"url": url("core"), "secretRef": "core-secret"},
            "registry": {"url": url("registry"), "controllerURL": url("registryctl"), "credentials": credentials},
            "tokenService": {"url": format!("{}/service/token", url("core"))},
            "storage": {"scanDataExports": {"volumeSource": {"emptyDir": {}}, "prefix": "exports"}},
            "tls": certificate,
            "workerPool": {"redisPool": redis(2)},
        }),
        "Registry" => json!({
            "authentication": {"htPasswd": {"realm": "harbor-registry-basic-realm", "secretRef": "registry-basicauth"}},
            "http": {
                "secretRef": "registry-http", "tls": certificate,
                "debug": {"port": 8001, "prometheus": {"enabled": true}},
            },
            "redis": redis(1),
            "storage": {
                "cache": {"blobdescriptor": "redis"},
                "driver": {"filesystem": {
                    "volumeSource": {"persistentVolumeClaim": {"claimName": "images"}}, "prefix": "registry",
                }},
                "maintenance": {"uploadPurging": {"enabled": true}},
            },
            "validation": {"disabled": true},
        }),
        "RegistryController" => json!({
            "registryRef": NAME,
            "authentication": {"coreSecretRef": "core-secret", "jobServiceSecretRef": "jobservice-secret"},
            "tls": tls.then(|| json!({"certificateRef": "ctl-tls"})),
        }),
        "ChartMuseum" => json!({
            "authentication": {"basicAuthRef": "core-secret"},
            "cache": {"redis": redis(3)},
            "chart": {"storage": {"filesystem": {"volumeSource": {"emptyDir": {}}, "prefix": "charts"}}},
            "server": {"tls": certificate},
        }),
        "Exporter" => json!({
            "core": {"url": url("core")},
            "database": core_database,
            "jobservice": {"redisPool": redis(2)},
            "tls": certificate,
        }),
        "NotaryServer" => json!({
            "authentication": {"token": {
                "realm": "https://harbor.example/service/token", "service": "harbor-notary",
                "issuer": "harbor-token-issuer", "certificateRef": "token",
            }},
            "storage": {"postgres": postgres("notaryserver")},
            "tls": certificate,
            "trustService": {"remote": {"host": format!("{NAME}-notarysigner"), "port": 7899, "certificateRef": "signer"}},
        }),
        "NotarySigner" => json!({
            "authentatication": {"certificateRef": "signer"},
            "storage": {"postgres": postgres("notarysigner"), "aliasesRef": "aliases"},
        }),
        "Trivy" => json!({
            "redis": redis(5),
            "server": {"tls": certificate, "tokenServiceCertificateAuthorityRefs": ["public"]},
            "storage": {"cache": {}, "reports": {}},
            "update": {"githubTokenRef": "github"},
        }),
        other => panic!("no {other} here"),
    };
    drop_nulls(&mut spec);
    spec
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
