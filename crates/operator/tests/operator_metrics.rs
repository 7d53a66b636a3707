//! Metrics as the generated manifests install them: over TLS, to users with RBAC permission.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_operator::manifests::{Install, Manifests};
use windlass_operator::{Operator, Process, Settings};
use windlass_runtime::access::Access;
use windlass_runtime::manager::Stop;
use windlass_testenv::world::{Running, Scraper, install, rights};
use windlass_testenv::{TestEnv, eventually, or_not_run};

const NAME: &str = "meter";

fn operator() -> Operator {
    Operator::new(NAME).part(|setup| {
        setup.needs(Access::none().reads::<ConfigMap>());
        Ok(())
    })
}

/// Applies everything of these files except the namespace, which the test has, and the Deployment, which the
/// test plays.
async fn apply(env: &TestEnv, manifests: &Manifests, files: &[&str]) -> Result<()> {
    for (_, text) in manifests.files().filter(|(name, _)| files.contains(name)) {
        for document in text.split("---\n") {
            install::apply(&env.client(), document).await?;
        }
    }
    Ok(())
}

/// Removes the cluster-scoped objects of these files.
async fn remove(env: &TestEnv, manifests: &Manifests, file: &str) -> Result<()> {
    for object in rights::file(manifests.files(), file)? {
        let name = object["metadata"]["name"].as_str().unwrap();
        let by = DeleteParams::default();
        match object["kind"].as_str() {
            Some("ClusterRole") => drop(Api::<ClusterRole>::all(env.client()).delete(name, &by).await?),
            Some("ClusterRoleBinding") => {
                drop(Api::<ClusterRoleBinding>::all(env.client()).delete(name, &by).await?);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Assembles the operator with its installed account.
async fn assemble(env: &TestEnv, namespace: &str) -> Result<Process> {
    let here = ([127, 0, 0, 1], 0).into();
    let settings = Settings {
        own_namespace: Some(namespace.to_owned()),
        admin: [here].into(),
        secure_metrics: Some(here),
        ..Settings::default()
    };
    let config = Kubeconfig::from_yaml(&install::account_config(env, namespace, NAME).await?)?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    Ok(operator().assemble(config, &settings)?)
}

fn start(process: Process) -> Running {
    let (readiness, metrics) = (process.readiness().clone(), process.metrics().clone());
    let (stopper, stop) = Stop::pair();
    let report = move || (readiness.report().is_ready(), readiness.report().to_string());
    Running::new(report, move || metrics.encode(), move || stopper.request(), process.run_until(stop))
}

async fn plain(address: std::net::SocketAddr, path: &str) -> Result<String, String> {
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    ask.await.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seam_m13_metrics_are_read_over_tls_with_the_reader_role_only() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("meter").await?;
    let home = namespace.name();
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator).namespace(home))?;
    apply(&env, &manifests, &["rbac.yaml", "metrics.yaml"]).await?;
    let mark = env.requests()?.mark()?;

    let process = assemble(&env, home).await?;
    let (health, metrics) = (process.admin()[0], process.secure_metrics().context("no metrics")?);
    let running = start(process);
    let url = format!("https://{metrics}/metrics");
    let scraper = Scraper::new(&env, home, NAME);
    let (reader, stranger) = (scraper.account("reader").await?, scraper.account("stranger").await?);
    scraper.grant("reader").await?;

    let (code, text) = scraper.scrape(&url, None).await?;
    assert_eq!(code, 401, "{text}");
    let (code, text) = scraper.scrape(&url, Some("no-such-token")).await?;
    assert_eq!(code, 401, "{text}");
    let (code, text) = scraper.scrape(&url, Some(&stranger)).await?;
    assert_eq!(code, 403, "{text}");
    let (code, text) = scraper.scrape(&url, Some(&reader)).await?;
    assert_eq!(code, 200, "{text}");
    assert!(text.contains("windlass_build_info"), "{text}");

    // Health has a plain port of its own, which serves nothing else.
    for path in ["/healthz", "/readyz"] {
        eventually(format!("{path} in clear"), || async {
            let answer = plain(health, path).await?;
            if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
        })
        .await?;
    }
    let answer = plain(health, "/metrics").await.map_err(anyhow::Error::msg)?;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

    running.stop().await?;
    let account = format!("system:serviceaccount:{home}:{NAME}");
    let forbidden = env.requests()?.since(mark)?.by_user(&account).code(403);
    assert!(forbidden.is_empty(), "a right is missing: {forbidden}");
    remove(&env, &manifests, "rbac.yaml").await?;
    remove(&env, &manifests, "metrics.yaml").await
}

/// An operator with rights in its namespace only cannot ask whose a token is: it refuses everybody, and says
/// why, until the component `metrics-auth` is applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seam_m13_a_namespaced_operator_refuses_scrapes_until_it_may_review_tokens() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("meter-local").await?;
    let home = namespace.name();
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator).namespace(home).namespaced())?;
    let cluster_wide = |object: &Value| object["kind"].as_str().unwrap().starts_with("Cluster");
    assert!(!rights::file(manifests.files(), "metrics.yaml")?.iter().any(cluster_wide));
    apply(&env, &manifests, &["rbac.yaml", "metrics.yaml"]).await?;

    let process = assemble(&env, home).await?;
    let metrics = process.secure_metrics().context("no metrics")?;
    let running = start(process);
    let url = format!("https://{metrics}/metrics");
    let scraper = Scraper::new(&env, home, NAME);
    let reader = scraper.account("reader").await?;
    let (code, text) = scraper.scrape(&url, Some(&reader)).await?;
    assert_eq!(code, 500, "{text}");
    assert!(text.contains("the right to create tokenreviews"), "{text}");

    apply(&env, &manifests, &["metrics-auth/metrics-auth.yaml"]).await?;
    scraper.grant("reader").await?;
    eventually("the reader to be admitted", || async {
        let (code, text) = scraper.scrape(&url, Some(&reader)).await.map_err(|error| error.to_string())?;
        if code == 200 { Ok(()) } else { Err(format!("{code}: {text}")) }
    })
    .await?;
    running.stop().await?;
    remove(&env, &manifests, "metrics-auth/metrics-auth.yaml").await
}

#[test]
fn seam_m13_the_network_policy_is_a_component_and_no_part_of_the_installation() -> Result<()> {
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator))?;
    let of = |name: &str| rights::file(manifests.files(), name);
    assert_eq!(of("network-policy/kustomization.yaml")?[0]["kind"], "Component");
    assert_eq!(of("network-policy/network-policy.yaml")?[0]["kind"], "NetworkPolicy");
    assert!(!of("kustomization.yaml")?[0].to_string().contains("network-policy"));
    assert!(!manifests.stream().contains("NetworkPolicy"));
    let container = &of("deployment.yaml")?[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["livenessProbe"]["httpGet"]["port"], "health");
    assert!(container["args"].to_string().contains("--metrics-secure"), "{container}");
    let directory = tempfile::tempdir()?;
    manifests.write(directory.path())?;
    manifests.check(directory.path())?;
    Ok(())
}
