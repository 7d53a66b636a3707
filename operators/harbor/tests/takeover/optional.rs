//! Tests the takeover of components that not every Harbor has from the first operator of these kinds: charts,
//! signatures, metrics.

use anyhow::Result;
use harbor_operator::api::{ChartMuseum, Exporter, NotaryServer, NotarySigner};
use harbor_operator::harbor::certmanager::Issuer;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use serde_json::{Value, json};

use crate::certificates::Authority;
use crate::upstream::{N, VERSION, Writer, certificate, selector, tls_secret};
use crate::world::World;

/// A component, as the Harbor was wired by it.
pub(crate) fn spec(controller: &str) -> Value {
    let redis =
        |database: i32| json!({"host": "redis", "port": 6379, "passwordRef": "redis", "database": database});
    let postgres = |name: &str| {
        json!({"hosts": [{"host": "db", "port": 5432}], "username": "harbor", "passwordRef": "db", "database": name,
            "parameters": {"sslmode": "disable"}})
    };
    let image = |name: &str| format!("goharbor/{name}:v{VERSION}");
    let tls = |of: &str| json!({"certificateRef": tls_secret(of)});
    match controller {
        "chartmuseum" => json!({
            "image": image("chartmuseum-photon"), "replicas": 1,
            "authentication": {"anonymousGet": false, "basicAuthRef": format!("{N}-core-secret")},
            "cache": {"redis": redis(3)},
            "chart": {"storage": {"filesystem": {"volumeSource": {"persistentVolumeClaim": {"claimName": "images"}}}}},
            "server": {"tls": tls("chartmuseum")},
        }),
        "exporter" => {
            let mut database = postgres("core");
            database["encryptionKeyRef"] = json!(format!("{N}-core-encryptionkey"));
            json!({
                "image": image("harbor-exporter"), "replicas": 1, "core": {"url": format!("https://{N}-core")},
                "database": database, "jobservice": {"redisPool": redis(2)}, "tls": tls("exporter"),
            })
        }
        "notaryserver" => json!({
            "image": image("notary-server-photon"), "replicas": 1,
            "authentication": {"token": {"realm": "https://harbor.example.com/service/token", "service": "harbor-notary",
                "issuer": "harbor-token-issuer", "certificateRef": format!("{N}-core-tokencert")}},
            "storage": {"postgres": postgres("notaryserver")}, "tls": tls("notaryserver"),
            "trustService": {"remote": {"host": format!("{N}-notarysigner"), "port": 7899,
                "certificateRef": format!("{N}-notaryserver-authentication")}},
        }),
        "notarysigner" => json!({
            "image": image("notary-signer-photon"), "replicas": 1,
            "authentatication": {"certificateRef": format!("{N}-notarysigner-authentication")},
            "storage": {"postgres": postgres("notarysigner"), "aliasesRef": format!("{N}-notarysigner-encryption-key")},
        }),
        other => panic!("no {other} here"),
    }
}

/// Notary's own authority, and the two certificates of it.
pub(crate) async fn certificates(writer: &Writer<'_>) -> Result<()> {
    let name = |of: &str| format!("{N}-{of}");
    let authority = Authority::new(&name("notarysigner-CA"));
    let own = name("notarysigner-authority");
    writer.put::<Issuer>(&own, json!({"spec": {"selfSigned": {}}})).await?;
    certificate(writer, &own, &own, &own, &authority.pair).await?;
    let issuer = name("notarysigner-authentication");
    writer.put::<Issuer>(&issuer, json!({"spec": {"ca": {"secretName": own}}})).await?;
    for of in ["notarysigner", "notaryserver"] {
        let (pair, of) = (authority.issue(&name(of)), name(&format!("{of}-authentication")));
        certificate(writer, &of, &of, &issuer, &pair).await?;
    }
    Ok(())
}

/// The components, and what each of them has made of itself.
pub(crate) async fn build(
    world: &World,
    harbor: &Writer<'_>,
    component: impl Fn(&str) -> Value,
) -> Result<()> {
    let key = json!({"type": "goharbor.io/notary-signer-aliases", "stringData": {"DEFAULT": "0123456789abcdef".repeat(8)}});
    harbor.put::<Secret>(&format!("{N}-notarysigner-encryption-key"), key).await?;
    let backend = json!({"service": {"name": format!("{N}-notaryserver"), "port": {"number": 443}}});
    let rule = json!({"host": "notary.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}});
    harbor.put::<Ingress>(&format!("{N}-notaryserver"), json!({"spec": {"rules": [rule]}})).await?;
    for of in ["chartmuseum", "notarysigner", "notaryserver"] {
        let pods = json!({"matchLabels": selector(of, world.namespace.name())});
        let spec = json!({"podSelector": pods, "policyTypes": ["Ingress"]});
        harbor.put::<NetworkPolicy>(&format!("{N}-{of}-ingress"), json!({"spec": spec})).await?;
    }

    let charts = harbor.put::<ChartMuseum>(N, component("chartmuseum")).await?;
    let files = json!([{"name": "config", "configMap": {"name": format!("{N}-chartmuseum")}}, {"name": "chartmuseum-data",
        "persistentVolumeClaim": {"claimName": "images"}}]);
    let charts = Writer::of(world, "chartmuseum", &charts);
    running(
        &charts,
        Workload {
            image: "chartmuseum-photon",
            port: ("https", 443, 8443),
            file: Some("config.yaml"),
            volumes: files,
        },
    )
    .await?;

    let exporter = harbor.put::<Exporter>(N, component("exporter")).await?;
    let exporter = Writer::of(world, "exporter", &exporter);
    running(
        &exporter,
        Workload { image: "harbor-exporter", port: ("metrics", 8001, 8001), file: None, volumes: json!([]) },
    )
    .await?;

    let signer = harbor.put::<NotarySigner>(N, component("notarysigner")).await?;
    let signer = Writer::of(world, "notarysigner", &signer);
    let files = json!([{"name": "config", "configMap": {"name": format!("{N}-notarysigner")}}]);
    running(
        &signer,
        Workload {
            image: "notary-signer-photon",
            port: ("api", 7899, 7899),
            file: Some("signer.json"),
            volumes: files,
        },
    )
    .await?;

    let server = harbor.put::<NotaryServer>(N, component("notaryserver")).await?;
    let server = Writer::of(world, "notaryserver", &server);
    let files = json!([{"name": "config", "configMap": {"name": format!("{N}-notaryserver")}}]);
    running(
        &server,
        Workload {
            image: "notary-server-photon",
            port: ("api", 443, 4443),
            file: Some("server.json"),
            volumes: files,
        },
    )
    .await
}

/// Workload of a component, as upstream wrote it.
struct Workload {
    image: &'static str,
    /// The name of its port, the number of the Service's, and the container's.
    port: (&'static str, i32, i32),
    file: Option<&'static str>,
    volumes: Value,
}

async fn running(writer: &Writer<'_>, workload: Workload) -> Result<()> {
    let controller = writer.controller();
    let (name, (port, outside, inside)) = (format!("{N}-{controller}"), workload.port);
    writer.service(&name, controller, port, outside).await?;
    if let Some(file) = workload.file {
        // The URL contains the password.
        writer
            .file(&name, file, "{\"storage\": {\"db_url\": \"postgres://harbor:pass%2Fword@db:5432/x\"}}")
            .await?;
    }
    let env = json!([{"name": "STALE", "value": "x"}]);
    let container = json!([{"name": controller, "image": format!("goharbor/{}:v{VERSION}", workload.image), "env": env,
        "ports": [{"name": port, "containerPort": inside}]}]);
    writer.deployment(container, workload.volumes).await
}
