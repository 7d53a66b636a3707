//! Creates the objects that the first operator of these kinds leaves behind: each as that operator wrote it,
//! with its field manager, by creates and updates.
//!
//! From the dumps that were taken of it: secrets with their types, rendered files under `binaryData`,
//! passwords in plain environment, checksums of generations and resource versions on everything, certificates
//! by cert-manager without owner references.

use anyhow::Result;
use harbor_operator::api::{Core, Harbor, JobService, Portal, Registry, RegistryController, Trivy};
use harbor_operator::harbor::certmanager::{Certificate, Issuer};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_testenv::world::Namespaced;

use crate::certificates::{Authority, Pair};
use crate::optional;
use crate::world::World;

/// The name of its field manager, as Go's clients have it.
const MANAGER: &str = "manager";
/// Name prefix of all components.
pub(crate) const N: &str = "sample-harbor";
/// Version of the Harbor that all objects belong to.
pub(crate) const VERSION: &str = "2.6.2";
/// Components with a certificate of the internal authority.
pub(crate) const INTERNAL: [&str; 9] = [
    "registry",
    "registryctl",
    "core",
    "jobservice",
    "portal",
    "trivy",
    "chartmuseum",
    "exporter",
    "notaryserver",
];

/// The spec that a user wrote.
pub(crate) fn harbor() -> Value {
    json!({
        "metadata": {"name": "sample", "annotations": {"goharbor.io/network-policies": "true"}},
        "spec": {
            "externalURL": "https://harbor.example.com",
            "harborAdminPasswordRef": "admin",
            "version": VERSION,
            "internalTLS": {"enabled": true},
            "expose": {
                "core": {"ingress": {"host": "harbor.example.com", "controller": "default"}, "tls": {"certificateRef": "public"}},
                "notary": {"ingress": {"host": "notary.example.com", "controller": "default"}, "tls": {"certificateRef": "public"}},
            },
            "core": {"tokenIssuer": {"name": "selfsigned", "kind": "Issuer"}}, "jobservice": {}, "registry": {}, "portal": {},
            "trivy": {"storage": {}}, "chartmuseum": {}, "exporter": {}, "notary": {},
            "database": {"hosts": [{"host": "db", "port": 5432}], "username": "harbor", "passwordRef": "db", "sslMode": "disable"},
            "redis": {"host": "redis", "port": 6379, "passwordRef": "redis"},
            "imageChartStorage": {"filesystem": {"registryPersistentVolume": {"claimName": "images"}}},
        },
    })
}

/// Writes objects with one field manager, for one owner.
pub(crate) struct Writer<'a> {
    world: &'a World,
    controller: &'static str,
    owner: Value,
}

impl<'a> Writer<'a> {
    pub(crate) fn of<K: Namespaced>(world: &'a World, controller: &'static str, owner: &K) -> Self {
        let owner = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "name": owner.name_any(),
            "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true});
        Self { world, controller, owner }
    }

    /// The word for the controller.
    pub(crate) fn controller(&self) -> &'static str {
        self.controller
    }

    /// The reference that all of this owner's objects have.
    pub(crate) fn owner(&self) -> &Value {
        &self.owner
    }

    /// Creates an object with all that this operator's objects have, and then updates it once, as it did.
    pub(crate) async fn put<K: Namespaced>(&self, name: &str, rest: Value) -> Result<K> {
        let namespace = self.world.namespace.name();
        let generation = |at: i64| format!("{namespace}.{}.checksum.goharbor.io/{}", self.controller, at);
        let mut object = rest;
        let meta = object.as_object_mut().unwrap().entry("metadata").or_insert_with(|| json!({}));
        meta["name"] = name.into();
        meta["ownerReferences"] = json!([self.owner]);
        meta["labels"]["goharbor.io/operator-controller"] = self.controller.into();
        meta["labels"]["goharbor.io/operator-version"] = "v1.4.0-rc1".into();
        meta["annotations"]["goharbor.io/warning"] =
            format!("⚠️ This Resource is managed by *{}* ⚠️", self.controller).into();
        meta["annotations"][generation(1)] = "1".into();
        let by = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
        let api = self.world.namespace.api::<K>();
        let mut made: K = api.create(&by, &serde_json::from_value(object)?).await?;
        made.annotations_mut().insert("static.checksum.goharbor.io/template".into(), "0a1b2c".into());
        loop {
            match api.replace(name, &by, &made).await {
                Ok(made) => return Ok(made),
                // Its controller may have been quicker.
                Err(kube::Error::Api(error)) if error.code == 409 => {
                    made.meta_mut().resource_version = api.get(name).await?.resource_version();
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A file, as it rendered them.
    pub(crate) async fn file(&self, name: &str, key: &str, text: &str) -> Result<()> {
        self.put::<ConfigMap>(name, json!({"binaryData": {key: base64(text)}})).await.map(drop)
    }

    pub(crate) async fn service(&self, name: &str, of: &str, port: &str, number: i32) -> Result<()> {
        let selector = selector(of, self.world.namespace.name());
        let ports = json!([{"name": port, "port": number, "targetPort": port, "protocol": "TCP"}]);
        self.put::<Service>(name, json!({"spec": {"ports": ports, "selector": selector}})).await.map(drop)
    }

    pub(crate) async fn deployment(&self, containers: Value, volumes: Value) -> Result<()> {
        let name = format!("{N}-{}", self.controller);
        let selector = selector(self.controller, self.world.namespace.name());
        let mut labels = selector.clone();
        labels["goharbor.io/operator-version"] = "v1.4.0-rc1".into();
        labels["goharbor.io/operator-controller"] = self.controller.into();
        let checksums = json!({
            format!("{name}.ns.configmap.{}.goharbor.io/uuid", self.controller): "8a6f",
            format!("{name}.ns.configmap.{}.goharbor.io/version", self.controller): "4711",
        });
        let pod = json!({"automountServiceAccountToken": false, "containers": containers, "volumes": volumes,
            "securityContext": {"runAsUser": 10000, "runAsGroup": 10000, "fsGroup": 10000}});
        // So many, so that those that were rolled can be counted.
        let spec = json!({"replicas": 1, "revisionHistoryLimit": 10, "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels, "annotations": checksums}, "spec": pod}});
        self.put::<Deployment>(&name, json!({"spec": spec})).await.map(drop)
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

pub(crate) fn selector(of: &str, namespace: &str) -> Value {
    let of = if of == "registryctl" { "registry" } else { of };
    json!({format!("{of}.goharbor.io/name"): format!("{N}-{of}"), format!("{of}.goharbor.io/namespace"): namespace})
}

fn from_secret(name: &str, secret: &str, key: &str) -> Value {
    json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}

pub(crate) fn tls_secret(of: &str) -> String {
    format!("{N}-internal-tls-{of}")
}

/// Creates everything that belongs to a Harbor, except for the objects of its user.
pub(crate) async fn build(world: &World) -> Result<()> {
    world
        .put::<Secret>(json!({"metadata": {"name": "redis"}, "stringData": {"redis-password": "pass/word"}}))
        .await?;
    let by = PostParams { field_manager: Some("kubectl-create".into()), ..PostParams::default() };
    let harbor: Harbor = serde_json::from_value(harbor())?;
    let harbor = world.namespace.api::<Harbor>().create(&by, &harbor).await?;
    let writer = Writer::of(world, "harbor", &harbor);
    credentials(&writer).await?;
    certificates(&writer).await?;
    let spec = |controller: &str| component(controller, world.namespace.name());
    let registry = writer.put::<Registry>(N, spec("registry")).await?;
    writer.put::<RegistryController>(N, spec("registryctl")).await?;
    let core = writer.put::<Core>(N, spec("core")).await?;
    let jobs = writer.put::<JobService>(N, spec("jobservice")).await?;
    let portal = writer.put::<Portal>(N, spec("portal")).await?;
    let trivy = writer.put::<Trivy>(N, spec("trivy")).await?;
    Box::pin(optional::build(world, &writer, &spec)).await?;
    ways_in(&writer).await?;
    self::registry(&Writer::of(world, "registry", &registry)).await?;
    self::core(&Writer::of(world, "core", &core)).await?;
    job_service(&Writer::of(world, "jobservice", &jobs)).await?;
    self::portal(&Writer::of(world, "portal", &portal)).await?;
    self::trivy(&Writer::of(world, "trivy", &trivy)).await
}

async fn credentials(writer: &Writer<'_>) -> Result<()> {
    let once = |type_: &str, data: Value| json!({"metadata": {"annotations": {"goharbor.io/immutable": "true"}}, "type": type_, "immutable": true, "stringData": data});
    let single = "goharbor.io/single";
    let long = "0123456789abcdef".repeat(8);
    for (suffix, object) in [
        ("core-csrf", once(single, json!({"key": "abcdefghijklmnopqrstuvwxyz012345"}))),
        (
            "core-secret",
            once(single, json!({"secret": long, "username": "chart_controller", "password": long})),
        ),
        ("core-encryptionkey", once(single, json!({"secret": "0123456789abcdef"}))),
        ("jobservice-secret", once(single, json!({"secret": "fedcba9876543210"}))),
        (
            "registry-http",
            once("goharbor.io/registry", json!({"REGISTRY_HTTP_SECRET": format!("'{long}'\n")})),
        ),
        (
            "registry-basicauth",
            json!({"type": "goharbor.io/htpasswd", "immutable": false, "stringData": {
            "htpasswd": "harbor_registry_user:$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
            "secret": "abcdefghijklmnopqrstuvwxyz012345"}}),
        ),
    ] {
        writer.put::<Secret>(&format!("{N}-{suffix}"), object).await?;
    }
    Ok(())
}

/// Issuers and certificates, and the Secrets that cert-manager wrote for them: in its own name, without owner
/// references.
async fn certificates(writer: &Writer<'_>) -> Result<()> {
    let authority = Authority::new(N);
    writer.put::<Issuer>(&format!("{N}-internal-authority"), json!({"spec": {"selfSigned": {}}})).await?;
    let of_authority = format!("{N}-internal-authority");
    certificate(writer, &of_authority, &tls_secret("authority"), &of_authority, &authority.pair).await?;
    let spec = json!({"spec": {"ca": {"secretName": tls_secret("authority")}}});
    writer.put::<Issuer>(&format!("{N}-internal"), spec).await?;
    for of in INTERNAL {
        let pair = authority.issue(&format!("{N}-{of}"));
        certificate(writer, &format!("{N}-internal-{of}"), &tls_secret(of), &format!("{N}-internal"), &pair)
            .await?;
    }
    optional::certificates(writer).await?;
    let token = format!("{N}-core-tokencert");
    certificate(writer, &token, &token, "selfsigned", &authority.pair).await
}

pub(crate) async fn certificate(
    writer: &Writer<'_>,
    name: &str,
    secret: &str,
    issuer: &str,
    pair: &Pair,
) -> Result<()> {
    let spec = json!({"secretName": secret, "commonName": name, "duration": "2160h0m0s", "usages": ["signing"],
        "privateKey": {"algorithm": "RSA", "encoding": "PKCS1", "size": 4096},
        "issuerRef": {"group": "", "kind": "Issuer", "name": issuer}});
    let status = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date"}]});
    writer.put::<Certificate>(name, json!({"spec": spec})).await?;
    let readiness = PatchParams {
        field_manager: Some("cert-manager-certificates-readiness".into()),
        ..PatchParams::default()
    };
    let status = Patch::Merge(json!({"status": status}));
    writer.world.namespace.api::<Certificate>().patch_status(name, &readiness, &status).await?;
    let annotations =
        json!({"cert-manager.io/certificate-name": name, "cert-manager.io/issuer-name": issuer});
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "annotations": annotations},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": base64(&pair.certificate), "tls.key": base64(&pair.key), "ca.crt": base64(&pair.authority)}});
    let by = PatchParams::apply("cert-manager-certificates-issuing").force();
    writer.world.namespace.api::<Secret>().patch(secret, &by, &Patch::Apply(object)).await?;
    Ok(())
}

/// The Ingress and the policies, as wrong as they were.
async fn ways_in(writer: &Writer<'_>) -> Result<()> {
    let path = |path: &str, of: &str| json!({"path": path, "pathType": "Prefix", "backend": {"service": {"name": format!("{N}-{of}"), "port": {"number": 443}}}});
    let paths: Vec<Value> = [
        ("/", "portal"),
        ("/api/", "core"),
        ("/service/", "core"),
        ("/v2", "core"),
        ("/chartrepo/", "core"),
        ("/c/", "core"),
    ]
    .map(|(at, of)| path(at, of))
    .to_vec();
    let annotations = json!({"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS", "nginx.ingress.kubernetes.io/proxy-body-size": "0"});
    let spec = json!({"tls": [{"hosts": ["harbor.example.com"], "secretName": "public"}],
        "rules": [{"host": "harbor.example.com", "http": {"paths": paths}}]});
    writer.put::<Ingress>(N, json!({"metadata": {"annotations": annotations}, "spec": spec})).await?;
    let namespace = writer.world.namespace.name();
    for of in ["core", "jobservice", "portal", "registry", "registryctl", "trivy"] {
        let nobody = json!({"matchLabels": {"harbor.goharbor.io/name": "nobody"}});
        let pods = if matches!(of, "registry" | "trivy") {
            json!({"matchLabels": selector(of, namespace)})
        } else {
            nobody
        };
        let spec = json!({"podSelector": pods, "policyTypes": ["Ingress"]});
        writer.put::<NetworkPolicy>(&format!("{N}-{of}-ingress"), json!({"spec": spec})).await?;
    }
    let spec =
        json!({"podSelector": {"matchLabels": selector("portal", namespace)}, "policyTypes": ["Egress"]});
    writer.put::<NetworkPolicy>(&format!("{N}-portal-egress"), json!({"spec": spec})).await.map(drop)
}

/// A component, as the Harbor was wired by it.
fn component(controller: &str, namespace: &str) -> Value {
    let (https, secret) = (|of: &str| format!("https://{N}-{of}"), |of: &str| format!("{N}-{of}"));
    let image = |name: &str| format!("goharbor/{name}:v{VERSION}");
    let tls = |of: &str| json!({"certificateRef": tls_secret(of)});
    let redis =
        |database: i32| json!({"host": "redis", "port": 6379, "passwordRef": "redis", "database": database});
    let credentials =
        json!({"username": "harbor_registry_user", "passwordRef": secret("registry-basicauth")});
    let tokens = json!({"url": format!("{}/service/token", https("core"))});
    let spec = match controller {
        "core" => json!({
            "image": image("harbor-core"), "replicas": 1, "authMode": "db_auth", "configExpiration": "5s",
            "adminInitialPasswordRef": "admin", "csrfKeyRef": secret("core-csrf"), "secretRef": secret("core-secret"),
            "externalEndpoint": "https://harbor.example.com", "publicCertificateRef": "public",
            "components": {
                "jobService": {"url": https("jobservice"), "secretRef": secret("jobservice-secret")},
                "portal": {"url": https("portal")},
                "registry": {"url": https("registry"), "controllerURL": https("registryctl"), "credentials": credentials,
                    "redis": redis(1), "storageProviderName": "filesystem", "sync": false},
                "tls": tls("core"),
                "tokenService": {"url": tokens["url"], "certificateRef": secret("core-tokencert")},
                "trivy": {"url": https("trivy"), "adapterURL": https("trivy")},
                "chartRepository": {"url": https("chartmuseum")}, "notaryServer": {"url": https("notaryserver")},
            },
            "database": {"hosts": [{"host": "db", "port": 5432}], "username": "harbor", "passwordRef": "db", "database": "core",
                "parameters": {"sslmode": "disable"}, "encryptionKeyRef": secret("core-encryptionkey"),
                "maxIdleConnections": 50, "maxOpenConnections": 1000},
            "log": {"level": "info"},
            "redis": {"host": "redis", "port": 6379, "passwordRef": "redis", "database": 0, "idleTimeout": "30s"},
        }),
        "jobservice" => json!({
            "image": image("harbor-jobservice"), "replicas": 1, "secretRef": secret("jobservice-secret"),
            "core": {"url": format!("{}:443", https("core")), "secretRef": secret("core-secret")},
            "registry": {"url": https("registry"), "controllerURL": format!("{}:443", https("registryctl")), "credentials": credentials},
            "tokenService": tokens, "tls": tls("jobservice"),
            "jobLoggers": {"files": [{"level": "INFO", "sweeper": "14h0m0s"}]}, "loggers": {"stdout": {"level": "INFO"}},
            "workerPool": {"workers": 10, "redisPool": redis(2)},
        }),
        "portal" => {
            json!({"image": image("harbor-portal"), "replicas": 1, "maxConnections": 1024, "tls": tls("portal")})
        }
        "registry" => json!({
            "image": image("registry-photon"), "replicas": 1,
            "authentication": {"htPasswd": {"realm": "harbor-registry-basic-realm", "secretRef": secret("registry-basicauth")}},
            "http": {"relativeURLs": true, "secretRef": secret("registry-http"), "tls": tls("registry")},
            "log": {"level": "info", "accessLog": {"disabled": false}},
            "redis": redis(1), "validation": {"disabled": true},
            "storage": {"cache": {"blobdescriptor": "redis"}, "redirect": {"disable": false},
                "driver": {"filesystem": {"volumeSource": {"persistentVolumeClaim": {"claimName": "images"}}}}},
        }),
        "registryctl" => json!({
            "image": image("harbor-registryctl"), "registryRef": N, "tls": tls("registryctl"), "log": {"level": "info"},
            "authentication": {"coreSecretRef": secret("core-secret"), "jobServiceSecretRef": secret("jobservice-secret")},
        }),
        "trivy" => json!({
            "image": image("trivy-adapter-photon"), "replicas": 1, "redis": redis(5), "log": {"level": "info"},
            "server": {"tls": tls("trivy"), "tokenServiceCertificateAuthorityRefs": ["public"]},
            "storage": {"cache": {}, "reports": {}},
        }),
        other => optional::spec(other),
    };
    let annotations = json!({"harbor.goharbor.io/version": VERSION, "goharbor.io/network-policies": "false",
        "goharbor.io/ingress-controller": "default", "harbor.checksum.goharbor.io/version": VERSION,
        format!("{namespace}.secret.checksum.goharbor.io/{N}-core-csrf"): "1234"});
    json!({"metadata": {"annotations": annotations}, "spec": spec})
}

async fn core(writer: &Writer<'_>) -> Result<()> {
    let name = format!("{N}-core");
    writer.service(&name, "core", "https", 443).await?;
    writer
        .file(
            &name,
            "app.conf",
            "appname = Harbor\nrunmode = prod\nenablegzip = true\n\n[prod]\nhttpport = 8080\n",
        )
        .await?;
    let url = |database: i32| format!("redis://:pass%2Fword@redis:6379/{database}?idle_timeout_seconds=30");
    let urls = json!({"_REDIS_URL_CORE": url(0), "_REDIS_URL_REG": url(1)});
    writer.put::<Secret>(&name, json!({"type": "Opaque", "stringData": urls})).await?;
    let env = json!([
        {"name": "EXT_ENDPOINT", "value": "https://harbor.example.com"}, {"name": "AUTH_MODE", "value": "db_auth"},
        {"name": "DATABASE_TYPE", "value": "postgresql"}, {"name": "POSTGRESQL_HOST", "value": "db"},
        {"name": "CHART_CACHE_DRIVER", "value": "redis"}, {"name": "RELOAD_KEY", "value": "true"}, {"name": "SYNC_QUOTA", "value": "true"},
        // What others took from a Secret, it once wrote as it is.
        {"name": "REGISTRY_CREDENTIAL_PASSWORD", "value": "abcdefghijklmnopqrstuvwxyz012345"},
        from_secret("POSTGRESQL_PASSWORD", "db", "postgres-password"), from_secret("CORE_SECRET", &format!("{N}-core-secret"), "secret"),
        from_secret("_REDIS_URL_CORE", &name, "_REDIS_URL_CORE"), {"name": "STALE", "value": "of an old release"},
    ]);
    let mounts = json!([
        {"name": "configuration", "mountPath": "/etc/core/app.conf", "subPath": "app.conf"},
        {"name": "encryption", "mountPath": "/etc/core/key", "subPath": "key"},
        {"name": "internal-certificates", "mountPath": "/etc/core/ssl"},
        {"name": "internal-certificates", "mountPath": "/harbor_cust_cert/ca.crt", "subPath": "ca.crt"},
        {"name": "stale", "mountPath": "/stale"},
    ]);
    let volumes = json!([
        {"name": "configuration", "configMap": {"name": name}}, {"name": "stale", "emptyDir": {}},
        {"name": "encryption", "secret": {"secretName": format!("{N}-core-encryptionkey"), "items": [{"key": "secret", "path": "key"}]}},
        {"name": "internal-certificates", "secret": {"secretName": tls_secret("core")}},
    ]);
    let get = json!({"httpGet": {"path": "/api/v2.0/ping", "port": "https", "scheme": "HTTPS"}});
    let container = json!([{"name": "core", "image": format!("goharbor/harbor-core:v{VERSION}"), "env": env, "volumeMounts": mounts,
        "ports": [{"name": "https", "containerPort": 8443}], "livenessProbe": get, "readinessProbe": get}]);
    writer.deployment(container, volumes).await
}

async fn job_service(writer: &Writer<'_>) -> Result<()> {
    let name = format!("{N}-jobservice");
    writer.service(&name, "jobservice", "https", 443).await?;
    // The URL contains the password.
    writer.file(&name, "config.yml", "protocol: https\nworker_pool:\n  redis_pool:\n    redis_url: redis://:pass%2Fword@redis:6379/2\n").await?;
    let env = json!([{"name": "CORE_URL", "value": format!("https://{N}-core:443")}, {"name": "STALE", "value": "x"},
        from_secret("JOBSERVICE_SECRET", &format!("{N}-jobservice-secret"), "secret")]);
    let volumes = json!([{"name": "config", "configMap": {"name": name}}, {"name": "logs", "emptyDir": {}},
        {"name": "internal-certificates", "secret": {"secretName": tls_secret("jobservice")}}]);
    let mounts = json!([{"name": "config", "mountPath": "/etc/jobservice"}, {"name": "logs", "mountPath": "/var/log/jobs"},
        {"name": "internal-certificates", "mountPath": "/etc/jobservice/ssl"}]);
    let container = json!([{"name": "jobservice", "image": format!("goharbor/harbor-jobservice:v{VERSION}"), "env": env,
        "volumeMounts": mounts, "ports": [{"name": "https", "containerPort": 8443}]}]);
    writer.deployment(container, volumes).await
}

async fn portal(writer: &Writer<'_>) -> Result<()> {
    let name = format!("{N}-portal");
    writer.service(&name, "portal", "https", 443).await?;
    writer.file(&name, "nginx.conf", "worker_processes auto;\n").await?;
    let volumes = json!([{"name": "configuration", "configMap": {"name": name}},
        {"name": "internal-certificates", "secret": {"secretName": tls_secret("portal")}}]);
    let mounts = json!([{"name": "configuration", "mountPath": "/etc/nginx/nginx.conf", "subPath": "nginx.conf"},
        {"name": "internal-certificates", "mountPath": "/etc/portal/ssl"}]);
    let container = json!([{"name": "portal", "image": format!("goharbor/harbor-portal:v{VERSION}"), "volumeMounts": mounts,
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "https", "containerPort": 8443}]}]);
    writer.deployment(container, volumes).await
}

async fn registry(writer: &Writer<'_>) -> Result<()> {
    let (name, ctl) = (format!("{N}-registry"), format!("{N}-registryctl"));
    writer.service(&name, "registry", "api", 443).await?;
    writer.service(&ctl, "registryctl", "https", 443).await?;
    writer
        .file(
            &name,
            "config.yml",
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: /var/lib/registry\n",
        )
        .await?;
    writer.file(&ctl, "config.yml", "protocol: https\nport: 8443\n").await?;
    let env = json!([from_secret("REGISTRY_HTTP_SECRET", &format!("{N}-registry-http"), "REGISTRY_HTTP_SECRET"),
        {"name": "REGISTRY_REDIS_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "redis", "key": "redis-password", "optional": true}}},
        {"name": "REGISTRY_AUTH_HTPASSWD_PATH", "value": "/etc/registry/auth/htpasswd"}]);
    let mounts = json!([{"name": "registry-config", "mountPath": "/etc/registry"}, {"name": "authentication-htpasswd", "mountPath": "/etc/registry/auth"},
        {"name": "storage", "mountPath": "/var/lib/registry"}, {"name": "internal-certificates", "mountPath": "/etc/registry/ssl"}]);
    let mut beside = mounts.clone();
    beside.as_array_mut().unwrap().extend([
        json!({"name": "registryctl-config", "mountPath": "/etc/registryctl"}),
        json!({"name": "ctl-internal-certificates", "mountPath": "/etc/registryctl/ssl"}),
    ]);
    let volumes = json!([{"name": "registry-config", "configMap": {"name": name}}, {"name": "registryctl-config", "configMap": {"name": ctl}},
        {"name": "authentication-htpasswd", "secret": {"secretName": format!("{N}-registry-basicauth"), "items": [{"key": "htpasswd", "path": "htpasswd"}]}},
        {"name": "storage", "persistentVolumeClaim": {"claimName": "images"}},
        {"name": "internal-certificates", "secret": {"secretName": tls_secret("registry")}},
        {"name": "ctl-internal-certificates", "secret": {"secretName": tls_secret("registryctl")}}]);
    let containers = json!([
        {"name": "registry", "image": format!("goharbor/registry-photon:v{VERSION}"), "args": ["serve", "/etc/registry/config.yml"], "env": env,
            "volumeMounts": mounts, "ports": [{"name": "api", "containerPort": 5000}]},
        {"name": "registryctl", "image": format!("goharbor/harbor-registryctl:v{VERSION}"), "env": env, "volumeMounts": beside,
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "https", "containerPort": 8443}]},
    ]);
    writer.deployment(containers, volumes).await
}

async fn trivy(writer: &Writer<'_>) -> Result<()> {
    let name = format!("{N}-trivy");
    writer.service(&name, "trivy", "https", 443).await?;
    writer
        .put::<ConfigMap>(
            &name,
            json!({"data": {"SCANNER_LOG_LEVEL": "info", "SCANNER_TRIVY_STALE": "true"}}),
        )
        .await?;
    let url = "redis://:pass%2Fword@redis:6379/5";
    let urls =
        json!({"SCANNER_REDIS_URL": url, "SCANNER_JOB_QUEUE_REDIS_URL": url, "SCANNER_STORE_REDIS_URL": url});
    writer.put::<Secret>(&name, json!({"type": "Opaque", "stringData": urls})).await?;
    let volumes = json!([{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "reports", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "internal-certificates", "secret": {"secretName": tls_secret("trivy")}}]);
    let mounts = json!([{"name": "cache", "mountPath": "/home/scanner/.cache/trivy"}, {"name": "reports", "mountPath": "/home/scanner/.cache/reports"},
        {"name": "internal-certificates", "mountPath": "/etc/harbor/ssl"}]);
    let container = json!([{"name": "trivy", "image": format!("goharbor/trivy-adapter-photon:v{VERSION}"), "volumeMounts": mounts,
        "envFrom": [{"configMapRef": {"name": name}}, {"secretRef": {"name": name}}],
        "env": [{"name": "SCANNER_API_SERVER_ADDR", "value": ":8443"}], "ports": [{"name": "https", "containerPort": 8443}]}]);
    writer.deployment(container, volumes).await
}
