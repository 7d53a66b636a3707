//! Tests that certificates can change while requests are admitted, without a failure.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::webhook_kit;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use webhook_kit::*;
use windlass_runtime::webhook::certificates::Policy;
use windlass_runtime::webhook::{Denial, Findings, Request, Target, Validator, Webhooks, validate_path};
use windlass_testenv::{TestEnv, or_not_run, within};

struct Yes;

impl Validator for Yes {
    type Object = ConfigMap;

    async fn validate(&self, _: &Request<ConfigMap>, _: &mut Findings) -> Result<(), Denial> {
        Ok(())
    }
}

/// Lifetimes of seconds instead of years. An API server sees a changed configuration within a fraction of the
/// settling time.
const HASTY: Policy = Policy {
    authority_lifetime: Duration::from_secs(48),
    authority_renewal: Duration::from_secs(32),
    leaf_lifetime: Duration::from_secs(16),
    leaf_renewal: Duration::from_secs(10),
    settle: Duration::from_secs(6),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_admission_fails_while_cas_and_certificates_change_under_load() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("rotation").await?;
    let name = format!("{}-yes", namespace.name());
    let webhooks = || Webhooks::new().validator(Yes).unwrap();
    // Connections of a second: the API server opens new ones all the time, and so verifies the certificate.
    let plan =
        |leads| Plan { policy: HASTY, leads, connection_age: Duration::from_secs(1), ..Plan::default() };
    let replicas = [
        Replica::start(&namespace, webhooks(), plan(Some(vec![Target::validating(&name)]))),
        Replica::start(&namespace, webhooks(), plan(None)),
    ];
    for replica in &replicas {
        replica.ready().await?;
    }
    // Every admission calls both replicas; a failure denies it.
    let path = validate_path::<ConfigMap>();
    let hooks: Vec<_> = ["a", "b"]
        .into_iter()
        .zip(&replicas)
        .map(|(each, replica)| hook(&namespace, each, &replica.url(&path), "Fail"))
        .collect();
    configure(&namespace, "ValidatingWebhookConfiguration", "yes", &hooks).await?;
    until_injected(&namespace, &name).await?;
    let maps: Api<ConfigMap> = namespace.api();
    let create = async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        maps.create(&dry, &map("m", &json!({}))).await
    };
    // Each of the two replicas has answered once. Before that, the API server may not know the configuration.
    let asked = |replica: &Replica| {
        let wanted = format!("controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"200\"}} ");
        let text = replica.metrics.encode();
        let count = text.lines().find_map(|line| line.strip_prefix(&wanted)).unwrap_or("0");
        count.parse::<u64>().unwrap()
    };
    within(Duration::from_mins(1), "both replicas to be asked", || async {
        create().await.map_err(|error| error.to_string())?;
        if replicas.iter().all(|replica| asked(replica) > 0) { Ok(()) } else { Err("not asked".to_owned()) }
    })
    .await?;

    let (done, admitted, greeted) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let through_the_api_server = async {
        while !done.load(Ordering::Relaxed) {
            create().await.context("an admission failed")?;
            admitted.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    };
    // A client that opens a connection for every request, and trusts the bundle of the configuration.
    let greeting_anew = async {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "object": {}}});
        while !done.load(Ordering::Relaxed) {
            for (bundle, replica) in bundles(&namespace, &name).await?.into_iter().zip(&replicas) {
                let raw = Raw::new(replica.address, &bundle.context("a bundle")?)?;
                let (code, _) = raw.json(&path, &review).await.context("a greeting failed")?;
                anyhow::ensure!(code == 200, "{code}");
                greeted.fetch_add(1, Ordering::Relaxed);
            }
        }
        anyhow::Ok(())
    };
    let watching = async {
        let authorities = Mutex::new(BTreeSet::new());
        let seen = within(Duration::from_mins(4), "three authorities to have issued certificates", || {
            let secret = secret(&namespace);
            let (authorities, replicas) = (&authorities, &replicas);
            async move {
                let data = secret.await.map_err(|error| error.to_string())?.data.unwrap();
                let (_, pem) = x509_parser::pem::parse_x509_pem(&data["tls.crt"].0).unwrap();
                let issuer = pem.parse_x509().unwrap().issuer().as_raw().to_vec();
                let authorities = {
                    let mut authorities = authorities.lock().unwrap();
                    authorities.insert(issuer);
                    authorities.len()
                };
                let changes = replicas.each_ref().map(|replica| *replica.serving.changes().borrow());
                let enough = authorities >= 3 && changes.iter().all(|count| *count >= 4);
                if enough { Ok(changes) } else { Err(format!("{authorities} authorities, {changes:?}")) }
            }
        })
        .await;
        done.store(true, Ordering::Relaxed);
        anyhow::Ok(seen?)
    };
    let ((), (), ()) =
        tokio::try_join!(through_the_api_server, greeting_anew, async { watching.await.map(drop) },)?;
    assert!(
        admitted.load(Ordering::Relaxed) > 100,
        "{admitted:?} admissions, {greeted:?} greetings: no load"
    );
    for replica in replicas {
        replica.stop().await?;
    }
    Ok(())
}
