//! Tests that election, events, certificates and their injection run under exactly the generated rules.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use anyhow::{Context as _, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
use windlass_runtime::access::Access;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::events::{EventType, Recorder, RecorderOptions, Regarding};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::{Election, ElectionOptions};
use windlass_runtime::manager::{Manager, Stage, Stop};
use windlass_runtime::webhook::Target;
use windlass_runtime::webhook::certificates::Certificates;
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

#[tokio::test]
async fn the_services_of_a_manager_need_no_more_than_their_generated_roles() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("access-services").await?;
    let configuration = namespace.name().to_owned();
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(env.client());
    let hook = serde_json::from_value(json!({
        "metadata": {"name": configuration},
        "webhooks": [{
            "name": "none.access.windlass.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Ignore", "namespaceSelector": namespace.selector(),
            "clientConfig": {"url": "https://127.0.0.1:1/validate"}, "rules": [],
        }],
    }))?;
    hooks.create(&PostParams::default(), &hook).await?;

    let (lease, secret) = ("the-operator", "the-operator-webhooks");
    let key = |name: &str| ObjectKey::namespaced(namespace.name(), name);
    let targets = [Target::validating(&*configuration)];
    let access = Access::none().elects(&key(lease)).events().certificates(&key(secret)).injects(&targets);
    let (cluster, roles) = access.roles("the-operator", [namespace.name()]);
    let cluster = cluster.context("a role for the configuration")?.rules.unwrap_or_default();
    let granted = cluster.into_iter().fold(Rules::default(), Rules::cluster_wide);
    let granted =
        roles.into_iter().flat_map(|role| role.rules.unwrap_or_default()).fold(granted, Rules::in_namespace);
    let user = namespace.client_for("the-operator", &granted).await?;
    let before = env.requests()?.mark()?;

    let client = Client::new(user.config(), ClientOptions::default())?;
    let mut manager = Manager::new();
    manager.election(Election::new(&client, ElectionOptions::new(lease).namespace(namespace.name()))?)?;
    let (recorder, publisher) = Recorder::new(&client, RecorderOptions::new("the-operator"))?;
    manager.add(Stage::Everywhere, publisher.into_runnable())?;
    let certificates = Certificates::in_secret(&client, key(secret), ["127.0.0.1"]);
    manager.add(Stage::Webhooks, certificates.runnable())?;
    manager.add(Stage::Controllers, certificates.injector(targets).into_runnable())?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(manager.run_until(stop));

    let about: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "thing"}}))?;
    let about = namespace.api::<ConfigMap>().create(&PostParams::default(), &about).await?;
    recorder.event(&Regarding::of(&about), EventType::Normal, "Seen", "Look", "it is there");
    let events: Api<Event> = namespace.api();
    eventually("the event", || async {
        let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let found = events.items.iter().any(|event| event.reason.as_deref() == Some("Seen"));
        if found { Ok(()) } else { Err(format!("{} events", events.items.len())) }
    })
    .await?;
    eventually("the authority to be injected", || async {
        let hook = hooks.get(&configuration).await.map_err(|error| error.to_string())?;
        let bundle = hook.webhooks.iter().flatten().find_map(|hook| hook.client_config.ca_bundle.clone());
        bundle.map(drop).ok_or_else(|| "no bundle".to_owned())
    })
    .await?;
    assert!(namespace.api::<Secret>().get(secret).await?.data.is_some());
    let holder = namespace.api::<Lease>().get(lease).await?.spec.and_then(|spec| spec.holder_identity);
    assert!(holder.is_some_and(|holder| !holder.is_empty()));
    stopper.request();
    running.await??;

    let requests = env.requests()?.since(before)?.by_user(user.name());
    hooks.delete(&configuration, &DeleteParams::default()).await?;
    assert_eq!(requests.code(403).count(), 0, "{requests}");
    assert!(requests.resource("leases").verb("update").is_empty(), "{requests}");
    Ok(())
}
