//! Tests of the admin server of a whole process: probes, metrics and authorization.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use windlass_runtime::access::Access;
use windlass_runtime::admin::{AdminServer, Guard};
use windlass_runtime::cache::{Cache, MetadataOnly, Selection};
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::{Health, Manager, Readiness, Stage, Stop};
use windlass_runtime::serve::Listener;
use windlass_runtime::webhook::{
    CertificateFiles, Certificates, Denial, Findings, Request, Validator, WebhookServer, Webhooks,
};
use windlass_testenv::{Rules, TestEnv, TestUser, eventually, or_not_run, rule};

/// Sends a GET over a plain socket; returns status, content type and body.
async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> Result<(u16, String, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nhost: admin\r\n{token}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("a head")?;
    let code = head.split(' ').nth(1).context("a status")?.parse()?;
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    Ok((code, kind.to_owned(), body.to_owned()))
}

fn listener() -> Listener {
    Listener::bind(([127, 0, 0, 1], 0)).unwrap()
}

fn token(user: &TestUser) -> Result<String> {
    let config: Value = serde_json::from_str(&user.kubeconfig()?)?;
    Ok(config["users"][0]["user"]["token"].as_str().context("a token")?.to_owned())
}

#[tokio::test]
async fn probes_are_answered_from_start_to_stop_with_every_check_by_name() -> Result<()> {
    let mut manager = Manager::new();
    let well = Arc::new(AtomicBool::new(false));
    let shown = Arc::clone(&well);
    manager.readiness().check("a database", move || {
        if shown.load(Ordering::Relaxed) {
            Health::Ready
        } else {
            Health::NotReady("it does not answer".into())
        }
    });
    let liveness = Readiness::default();
    let listener = listener();
    let address = listener.address();
    let admin = AdminServer::new(listener, manager.readiness(), manager.metrics()).liveness(&liveness);
    manager.add(Stage::Admin, admin.into_runnable())?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(manager.run_until(stop));
    eventually("the manager to run", || async {
        let (_, _, text) = get(address, "/readyz/manager", None).await.map_err(|error| error.to_string())?;
        if text == "ok" { Ok(()) } else { Err(text) }
    })
    .await?;

    let (code, kind, text) = get(address, "/readyz", None).await?;
    assert_eq!((code, &*kind), (500, "text/plain; charset=utf-8"));
    assert_eq!(
        text,
        "[+] manager ok\n[-] a database failed: it does not answer\n[+] admin ok\nreadyz check failed\n"
    );
    assert_eq!(get(address, "/readyz?exclude=a+database", None).await?.0, 200);
    assert_eq!(get(address, "/readyz/a%20database", None).await?.0, 500);
    assert_eq!(get(address, "/readyz/nothing", None).await?.0, 404);
    let (code, _, text) = get(address, "/healthz?verbose", None).await?;
    assert_eq!(
        (code, &*text),
        (200, "[+] ping ok\nhealthz check passed\n"),
        "not ready is no reason to be restarted"
    );
    liveness.check("deadlock", || Health::NotReady("a lock is held for ever".into()));
    assert_eq!(get(address, "/healthz", None).await?.0, 500);
    well.store(true, Ordering::Relaxed);
    assert_eq!(get(address, "/readyz", None).await?, (200, kind.clone(), "ok".to_owned()));
    let (_, _, text) = get(address, "/readyz/?verbose", None).await?;
    assert!(text.ends_with("readyz check passed\n"), "{text}");
    assert_eq!(get(address, "/elsewhere", None).await?.0, 404);
    stopper.request();
    running.await??;
    assert!(get(address, "/healthz", None).await.is_err(), "it is gone");
    Ok(())
}

struct Yes;

impl Validator for Yes {
    type Object = ConfigMap;

    async fn validate(&self, _: &Request<ConfigMap>, _: &mut Findings) -> Result<(), Denial> {
        Ok(())
    }
}

/// A scraped metric family: its type, and the label names of its samples.
#[derive(Debug, Default, PartialEq, Eq)]
struct Family {
    kind: String,
    labels: BTreeSet<Vec<String>>,
}

/// Parses OpenMetrics text strictly: every sample belongs to the family declared last, every value is a
/// number.
fn parse(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let body = text.strip_suffix("# EOF\n").unwrap();
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            // A counter is declared without the suffix of its samples.
            let full = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            let family = Family { kind: kind.to_owned(), ..Family::default() };
            assert!(families.insert(full.clone(), family).is_none(), "{name} is declared twice");
            current = full;
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
            let base = match families[&current].kind.as_str() {
                "histogram" => {
                    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap()
                }
                _ => name,
            };
            assert_eq!(base, current, "{line}");
            let names = labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once('='));
            let names = names.map(|(name, _)| name.to_owned()).filter(|name| name != "le").collect();
            families.get_mut(&current).unwrap().labels.insert(names);
        }
    }
    families
}

/// The metrics of controller-runtime: name, type and labels. Its `go_*` are left out.
const EXPECTED: [(&str, &str, &[&str]); 30] = [
    ("controller_runtime_reconcile_total", "counter", &["controller", "result"]),
    ("controller_runtime_reconcile_errors_total", "counter", &["controller"]),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_panics_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_timeouts_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_time_seconds", "histogram", &["controller"]),
    ("controller_runtime_max_concurrent_reconciles", "gauge", &["controller"]),
    ("controller_runtime_active_workers", "gauge", &["controller"]),
    ("controller_runtime_webhook_latency_seconds", "histogram", &["webhook"]),
    ("controller_runtime_webhook_requests_total", "counter", &["webhook", "code"]),
    ("controller_runtime_webhook_requests_in_flight", "gauge", &["webhook"]),
    ("controller_runtime_webhook_panics_total", "counter", &[]),
    ("controller_runtime_conversion_webhook_panics_total", "counter", &[]),
    ("workqueue_depth", "gauge", &["name", "controller", "priority"]),
    ("workqueue_adds_total", "counter", &["name", "controller"]),
    ("workqueue_queue_duration_seconds", "histogram", &["name", "controller"]),
    ("workqueue_work_duration_seconds", "histogram", &["name", "controller"]),
    ("workqueue_unfinished_work_seconds", "gauge", &["name", "controller"]),
    ("workqueue_longest_running_processor_seconds", "gauge", &["name", "controller"]),
    ("workqueue_retries_total", "counter", &["name", "controller"]),
    ("rest_client_requests_total", "counter", &["code", "method", "host"]),
    ("rest_client_request_duration_seconds", "histogram", &["verb", "host"]),
    ("process_resident_memory_bytes", "gauge", &[]),
    ("process_virtual_memory_bytes", "gauge", &[]),
    ("process_open_fds", "gauge", &[]),
    ("process_max_fds", "gauge", &[]),
    ("process_start_time_seconds", "gauge", &[]),
    ("process_cpu_seconds_total", "counter", &[]),
    ("certwatcher_read_certificate_total", "counter", &[]),
    ("certwatcher_read_certificate_errors_total", "counter", &[]),
];

#[tokio::test]
async fn the_metrics_of_a_whole_process_have_controller_runtimes_names_types_and_labels() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("metrics").await?;
    let client = Client::from_kube(env.client(), ClientOptions::default())?;
    let cache = Cache::new(&client);
    let maps = cache.reader::<MetadataOnly<ConfigMap>>(&Selection::all().in_namespace(namespace.name()));
    let controller = Controller::for_(&maps).build(|_: ObjectKey| async { Ok(Requeue::OnChange) })?;
    let mut manager = Manager::new();
    let metrics = manager.metrics().clone();
    metrics.client(&client, "127.0.0.1:6443");
    let files = CertificateFiles::new("/nowhere/tls.crt", "/nowhere/tls.key", &metrics);
    let certificates =
        Certificates::in_secret(&client, ObjectKey::namespaced(namespace.name(), "webhooks"), ["127.0.0.1"]);
    let webhooks = Webhooks::new().validator(Yes)?;
    let server = WebhookServer::new(listener(), webhooks, certificates.serving(), &metrics);
    let listener = listener();
    let address = listener.address();
    let admin = AdminServer::new(listener, manager.readiness(), &metrics);
    manager.add(Stage::Admin, admin.into_runnable())?;
    manager.add(Stage::Webhooks, certificates.runnable())?;
    manager.add(Stage::Webhooks, server.into_runnable())?;
    manager.cache(&cache)?;
    manager.controller(controller)?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(manager.run_until(stop));
    let reconciled = "controller_runtime_reconcile_total{controller=\"configmap\",result=\"success\"} ";
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
    namespace.api::<ConfigMap>().create(&PostParams::default(), &map).await?;
    let (kind, text) = eventually("a reconcile to be counted", || async {
        let (_, kind, text) = get(address, "/metrics", None).await.map_err(|error| error.to_string())?;
        let count = text.lines().find_map(|line| line.strip_prefix(reconciled)).unwrap_or("none");
        if count.parse().unwrap_or(0) > 0 { Ok((kind, text)) } else { Err(count.to_owned()) }
    })
    .await?;
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let found = parse(&text);
    for (name, kind, labels) in EXPECTED {
        let family = found.get(name).with_context(|| format!("{name} is missing"))?;
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(family, &Family { kind: kind.to_owned(), labels: [labels].into() }, "{name}");
    }
    let end = "windlass_webhook_certificate_end_timestamp_seconds";
    assert_eq!(found[end].kind, "gauge");
    // Our own metrics have names of their own, and metrics with controller-runtime's names are equal to them.
    let known = |name: &str| EXPECTED.iter().any(|(expected, ..)| *expected == name);
    let stray: Vec<_> = found
        .keys()
        .filter(|name| {
            !known(name) && !name.starts_with("windlass_") && !name.starts_with("leader_election_")
        })
        .filter(|name| !name.starts_with("rest_client_"))
        .collect();
    assert!(stray.is_empty(), "{stray:?}");
    drop(files);
    stopper.request();
    running.await??;
    Ok(())
}

#[tokio::test]
async fn a_guarded_server_authorizes_requests_through_the_cluster() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("guard").await?;
    let metrics_url = PolicyRule {
        non_resource_urls: Some(vec!["/metrics".to_owned()]),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    };
    // The process itself has exactly the rules that a guard needs.
    let needs = Access::none().guard().rules().into_iter().fold(Rules::default(), Rules::cluster_wide);
    let process = namespace.client_for("process", &needs).await?;
    // The test environment waits until a resource is granted; the URL is in the same role.
    let may_scrape = Rules::default().cluster_wide(metrics_url).cluster_wide(rule("", &["nodes"], &["get"]));
    let scraper = token(&namespace.client_for("scraper", &may_scrape).await?)?;
    let stranger = token(&namespace.client_for("stranger", &Rules::default()).await?)?;
    let client = Client::new(process.config(), ClientOptions::default())?;
    let mut manager = Manager::new();
    let listener = listener();
    let address = listener.address();
    let admin = AdminServer::new(listener, manager.readiness(), manager.metrics()).guard(Guard::new(&client));
    manager.add(Stage::Admin, admin.into_runnable())?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(manager.run_until(stop));
    let code = async |path: &str, token: Option<&str>| anyhow::Ok(get(address, path, token).await?.0);
    eventually("the manager to be ready", || async {
        let code = code("/readyz", None).await.map_err(|error| error.to_string())?;
        if code == 200 { Ok(()) } else { Err(code.to_string()) }
    })
    .await?;
    assert_eq!(code("/metrics", None).await?, 401);
    assert_eq!(code("/metrics", Some("no-such-token")).await?, 401);
    let (refused, _, text) = get(address, "/metrics", Some(&stranger)).await?;
    assert_eq!(refused, 403);
    let user = format!("system:serviceaccount:{}:stranger", namespace.name());
    assert_eq!(text, format!("{user} may not get /metrics; grant it on the nonResourceURL /metrics"));
    assert_eq!(code("/metrics", Some(&scraper)).await?, 200);
    assert_eq!(code("/healthz", None).await?, 200, "probes bring no token");
    let before = env.requests()?.mark()?;
    for _ in 0..5 {
        assert_eq!(code("/metrics", Some(&scraper)).await?, 200);
    }
    let asked = env.requests()?.since(before)?.by_user(process.name());
    assert!(asked.is_empty(), "answers are remembered: {asked}");
    stopper.request();
    running.await??;
    Ok(())
}
