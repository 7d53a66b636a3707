//! Tests of webhooks called by a real API server, and by a client that sends malformed requests.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::webhook_kit;

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webhook_kit::*;
use windlass_runtime::webhook::{
    Defaulter, Denial, Findings, Operation, Request, Target, Validator, Webhooks, mutate_path, validate_path,
};
use windlass_testenv::{TestEnv, eventually, or_not_run};

/// A ConfigMap as an old release knew it: without `immutable` and `binaryData`.
#[derive(Clone, Debug, Serialize, Deserialize, kube::Resource)]
#[resource(inherit = ConfigMap)]
struct OldMap {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

struct Motto;

impl Defaulter for Motto {
    type Object = OldMap;

    async fn default(&self, map: &mut OldMap, _: &Request<OldMap>) -> Result<(), Denial> {
        if let Some(old) = map.data.remove("slogan") {
            map.data.insert("motto".into(), old);
        }
        map.data.entry("motto".into()).or_insert_with(|| "onwards".into());
        Ok(())
    }
}

struct Rules;

impl Validator for Rules {
    type Object = ConfigMap;

    async fn validate(&self, request: &Request<ConfigMap>, found: &mut Findings) -> Result<(), Denial> {
        match &request.operation {
            Operation::Create { new } | Operation::Update { new, .. } => {
                let data = new.data.clone().unwrap_or_default();
                assert!(!data.contains_key("bomb"), "what a bug does");
                found.warn("size is old; write sizes");
                if data.get("size").is_some_and(|size| size.parse::<u8>().is_err()) {
                    found.invalid("data.size", &data["size"], "must be a number from 0 to 255");
                }
            }
            Operation::Delete { old } if old.metadata.name.as_deref() == Some("kept") => {
                return Err(Denial::conflict("it is in use; remove its users first"));
            }
            Operation::Delete { .. } => {}
        }
        Ok(())
    }
}

fn webhooks() -> Webhooks {
    Webhooks::new().defaulter(Motto).unwrap().validator(Rules).unwrap()
}

#[tokio::test]
async fn the_api_server_calls_defaulter_and_validator() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("webhook").await?;
    let validating_name = format!("{}-rules", namespace.name());
    let mutating_name = format!("{}-motto", namespace.name());
    let leads = Some(vec![Target::validating(&validating_name), Target::mutating(&mutating_name)]);
    let replica = Replica::start(&namespace, webhooks(), Plan { leads, ..Plan::default() });
    replica.ready().await?;
    let rules = hook(&namespace, "rules", &replica.url(&validate_path::<ConfigMap>()), "Fail");
    let motto = hook(&namespace, "motto", &replica.url(&mutate_path::<ConfigMap>()), "Fail");
    // The configurations are created after the leader starts: they get their CA bundle when they appear.
    configure(&namespace, "ValidatingWebhookConfiguration", "rules", &[rules]).await?;
    configure(&namespace, "MutatingWebhookConfiguration", "motto", &[motto]).await?;
    until_injected(&namespace, &validating_name).await?;
    let maps: Api<ConfigMap> = namespace.api();
    eventually("the API server to trust the webhooks", || async {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let map = map("probe", &json!({}));
        let answer = maps.create(&dry, &map).await.map_err(|error| error.to_string())?;
        // The API server does not call the webhooks until it knows the configurations.
        if answer.data.is_some() { Ok(()) } else { Err("the defaulter was not asked".to_owned()) }
    })
    .await?;

    let sent: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "kept", "annotations": {"a": "b"}}, "data": {"slogan": "forever", "size": "7"},
        "binaryData": {"b": "AA=="}, "immutable": true}))?;
    let made = maps.create(&PostParams::default(), &sent).await?;
    assert_eq!(
        made.data.clone().unwrap(),
        [("motto".into(), "forever".into()), ("size".into(), "7".into())].into()
    );
    assert_eq!(
        (made.immutable, &made.binary_data),
        (Some(true), &sent.binary_data),
        "what OldMap does not know"
    );

    let bad = map("bad", &json!({"size": "big"}));
    let (code, message) = status(maps.create(&PostParams::default(), &bad).await);
    assert_eq!(code, 422);
    assert!(
        message.ends_with(
            "ConfigMap \"bad\" is invalid: data.size: Invalid value: \"big\": must be a number from 0 to 255"
        ),
        "{message}"
    );
    let (code, message) = status(maps.delete("kept", &DeleteParams::default()).await);
    assert_eq!(code, 409, "{message}");
    assert!(message.ends_with("it is in use; remove its users first"), "{message}");
    maps.create(&PostParams::default(), &map("free", &json!({}))).await?;
    maps.delete("free", &DeleteParams::default()).await?;

    let request =
        http::Request::post(format!("/api/v1/namespaces/{}/configmaps?dryRun=All", namespace.name()));
    let body = serde_json::to_vec(&map("warned", &json!({})))?;
    let request = request.header("content-type", "application/json").body(kube::client::Body::from(body))?;
    let answer = env.client().send(request).await?;
    let warning = answer.headers().get("warning").unwrap().to_str()?;
    assert!(warning.contains("size is old; write sizes"), "{warning}");
    let text = replica.metrics.encode();
    let path = validate_path::<ConfigMap>();
    assert!(
        text.contains(&format!(
            "controller_runtime_webhook_requests_total{{webhook=\"{path}\",code=\"200\"}}"
        ))
    );
    assert!(text.contains(&format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{path}\"}} 0")));
    replica.stop().await
}

#[tokio::test]
async fn a_webhook_that_is_down_or_panics_follows_its_failure_policy() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    for policy in ["Ignore", "Fail"] {
        let namespace = env.namespace(&format!("down-{policy}")).await?;
        let name = format!("{}-rules", namespace.name());
        let leads = Some(vec![Target::validating(&name)]);
        let replica = Replica::start(&namespace, webhooks(), Plan { leads, ..Plan::default() });
        replica.ready().await?;
        let rules = hook(&namespace, "rules", &replica.url(&validate_path::<ConfigMap>()), policy);
        configure(&namespace, "ValidatingWebhookConfiguration", "rules", &[rules]).await?;
        until_injected(&namespace, &name).await?;
        let maps: Api<ConfigMap> = namespace.api();
        let create = async |data: Value| {
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            maps.create(&dry, &map("m", &data)).await
        };
        eventually("the API server to ask the webhook", || async {
            match create(json!({"size": "big"})).await {
                Err(kube::Error::Api(status)) if status.code == 422 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;

        let panicked = create(json!({"bomb": "1"})).await;
        assert!(replica.metrics.encode().contains("controller_runtime_webhook_panics_total 1\n"));
        create(json!({})).await?;
        replica.stop().await?;
        let down = create(json!({"size": "big"})).await;
        if policy == "Ignore" {
            panicked?;
            down?;
        } else {
            for result in [panicked, down] {
                let (code, message) = status(result);
                assert_eq!(code, 500, "{message}");
                assert!(message.contains("failed calling webhook \"rules.example.com\""), "{message}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_malformed_request_is_answered_with_the_reason() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("malformed").await?;
    let replica = Replica::start(&namespace, webhooks(), Plan::default());
    replica.ready().await?;
    let raw = replica.raw(&namespace).await?;
    let path = validate_path::<ConfigMap>();
    let review = |version: &str, request: Value| {
        json!({"apiVersion": version, "kind": "AdmissionReview", "request": request}).to_string()
    };
    let v1 = "admission.k8s.io/v1";
    let json_type = "application/json";
    let fine = json!({"uid": "u", "operation": "CREATE", "object": {"metadata": {"name": "a"}}});
    let bomb = json!({"uid": "u", "operation": "CREATE", "object": {"data": {"bomb": "1"}}});
    // (case, content type, body, HTTP status, code in the answer, its uid, a part of the message)
    let cases = [
        (
            "another content type",
            "text/plain",
            review(v1, fine.clone()),
            415,
            415,
            "",
            "send application/json",
        ),
        ("no content type", "", review(v1, fine.clone()), 415, 415, "", "send application/json"),
        ("an empty body", json_type, String::new(), 400, 400, "", "body is empty"),
        ("no JSON", json_type, "{".into(), 400, 400, "", "not an AdmissionReview"),
        ("no review", json_type, "{}".into(), 400, 400, "", "apiVersion \"\" is not supported"),
        ("an unknown version", json_type, review("admission.k8s.io/v2", fine.clone()), 400, 400, "u", "v2"),
        ("no request", json_type, review(v1, Value::Null), 400, 400, "", "has no request"),
        ("no uid", json_type, review(v1, json!({"operation": "CREATE"})), 400, 400, "", "has no uid"),
        ("a huge body", json_type, " ".repeat(7 * 1024 * 1024 + 1), 413, 413, "", "more than 7340032 bytes"),
        (
            "an unknown operation",
            json_type,
            review(v1, json!({"uid": "u", "operation": "X"})),
            200,
            400,
            "u",
            "is unknown",
        ),
        (
            "no object",
            json_type,
            review(v1, json!({"uid": "u", "operation": "CREATE"})),
            200,
            400,
            "u",
            "no object",
        ),
        (
            "no old object",
            json_type,
            review(v1, json!({"uid": "u", "operation": "DELETE"})),
            200,
            400,
            "u",
            "oldObject",
        ),
        (
            "another object",
            json_type,
            review(v1, json!({"uid": "u", "operation": "CREATE", "object": {"data": 7}})),
            200,
            400,
            "u",
            "cannot be read as a ConfigMap",
        ),
        ("a panic", json_type, review(v1, bomb), 500, 500, "u", "panicked"),
    ];
    for (what, content_type, body, http, code, uid, message) in cases {
        let (got, answer) = raw.post(&path, content_type, body).await?;
        let response = &answer["response"];
        assert_eq!((got, &response["status"]["code"]), (http, &json!(code)), "{what}: {answer}");
        assert_eq!((&response["uid"], &response["allowed"]), (&json!(uid), &json!(false)), "{what}");
        assert_eq!(answer["apiVersion"], v1, "{what}");
        assert!(response["status"]["message"].as_str().unwrap().contains(message), "{what}: {answer}");
    }
    // The server still answers, in the requested version, also at the size limit.
    for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
        let mut body = review(version, fine.clone());
        body.push_str(&" ".repeat(7 * 1024 * 1024 - body.len()));
        let (code, answer) = raw.post(&path, "application/json; charset=utf-8", body).await?;
        assert_eq!((code, &answer["response"]["allowed"]), (200, &json!(true)));
        assert_eq!(answer["apiVersion"], version);
    }
    assert_eq!(raw.json("/no-such-hook", &json!({})).await?.0, 404);
    assert_eq!(raw.json("/convert", &json!({})).await?.0, 404, "nothing to convert here");
    replica.stop().await
}

#[tokio::test]
async fn two_replicas_that_start_at_once_share_one_ca_and_only_the_leader_injects_it() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("two-replicas").await?;
    let name = format!("{}-rules", namespace.name());
    let before = env.requests()?.mark()?;
    let leads = || Some(vec![Target::validating(&name)]);
    let replicas = [
        Replica::start(&namespace, webhooks(), Plan { leads: leads(), ..Plan::default() }),
        Replica::start(&namespace, webhooks(), Plan::default()),
    ];
    for replica in &replicas {
        replica.ready().await?;
    }
    let request = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "object": {}}});
    for replica in &replicas {
        // Both replicas are trusted by the one bundle of the Secret.
        let (code, _) = replica.raw(&namespace).await?.json(&validate_path::<ConfigMap>(), &request).await?;
        assert_eq!(code, 200);
        assert_eq!(*replica.serving.changes().borrow(), 1, "a replica served another certificate before");
    }
    let url = replicas[0].url(&validate_path::<ConfigMap>());
    let hooks = ["a", "b"].map(|each| hook(&namespace, each, &url, "Ignore"));
    configure(&namespace, "ValidatingWebhookConfiguration", "rules", &hooks).await?;
    until_injected(&namespace, &name).await?;
    let announced = eventually("the authority to be announced", || async {
        let secret = secret(&namespace).await.map_err(|error| error.to_string())?;
        let text = String::from_utf8(secret.data.unwrap()["authorities.json"].0.clone()).unwrap();
        if text.contains("announced") {
            Ok(secret.metadata.resource_version)
        } else {
            Err("not yet".to_owned())
        }
    })
    .await?;

    // One bundle is removed by hand: only it is repaired, and the Secret is not written again.
    let configurations =
        Api::<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration>::all(env.client());
    let wipe = json!([{"op": "remove", "path": "/webhooks/1/clientConfig/caBundle"}]);
    let wipe: json_patch::Patch = serde_json::from_value(wipe)?;
    configurations.patch(&name, &PatchParams::default(), &Patch::Json::<()>(wipe)).await?;
    until_injected(&namespace, &name).await?;
    assert_eq!(secret(&namespace).await?.metadata.resource_version, announced);
    for replica in replicas {
        replica.stop().await?;
    }
    let requests = env.requests()?.since(before)?;
    let created = requests.in_namespace(namespace.name()).resource("secrets").verb("create").code(201);
    assert_eq!(created.count(), 1, "{requests}");
    let injected = requests.resource("validatingwebhookconfigurations").verb("patch");
    let injected = injected.filter(|request| request.name == name);
    assert_eq!(injected.count(), 3, "two by the leader, one to wipe: {requests}");
    Ok(())
}

#[tokio::test]
async fn a_deleted_certificate_secret_is_recreated_with_the_trusted_ca() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("deleted").await?;
    let replica = Replica::start(&namespace, webhooks(), Plan::default());
    replica.ready().await?;
    let before = secret(&namespace).await?;
    namespace.api::<Secret>().delete(SECRET, &DeleteParams::default()).await?;
    let after = eventually("the Secret to come back", || async {
        secret(&namespace).await.map_err(|error| error.to_string())
    })
    .await?;
    assert_ne!(before.metadata.uid, after.metadata.uid);
    assert_eq!(before.data.unwrap()["ca.crt"], after.data.unwrap()["ca.crt"]);
    replica.stop().await
}

/// During a rollout an API server goes on calling a Pod for a moment after it was told to stop.
#[tokio::test]
async fn seam_h4_webhooks_go_on_answering_for_a_while_after_the_stop() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("linger").await?;
    let plan = Plan { linger: std::time::Duration::from_secs(3), ..Plan::default() };
    let replica = Replica::start(&namespace, webhooks(), plan);
    replica.ready().await?;
    let raw = replica.raw(&namespace).await?;
    replica.stopping().await?;
    // A new connection, as another API server opens it.
    let (code, _) = raw.json(&validate_path::<ConfigMap>(), &json!({})).await?;
    assert_eq!(code, 400, "it is answered that this is no review");
    replica.stop().await
}
