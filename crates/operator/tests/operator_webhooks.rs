//! An operator with webhooks: the content of its manifests, and calls of the webhooks by the API server.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_operator::{BoxError, Operator, Settings, Setup};
use windlass_runtime::access::Access;
use windlass_runtime::cache::{MetadataOnly, Selection};
use windlass_runtime::controller::{Controller, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::Stop;
use windlass_runtime::webhook::{Converter, Defaulter, Denial, Findings, Request, Validator};
use windlass_testenv::world::rights;
use windlass_testenv::{TestEnv, eventually, or_not_run};

/// A cup that holds something.
#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(group = "operator.windlass.dev", version = "v1", kind = "Cup", namespaced)]
struct CupSpec {
    #[serde(default)]
    content: String,
}

struct Barista;

impl Defaulter for Barista {
    type Object = Cup;

    async fn default(&self, cup: &mut Cup, _: &Request<Cup>) -> Result<(), Denial> {
        if cup.spec.content.is_empty() {
            cup.spec.content = "coffee".into();
        }
        Ok(())
    }
}

impl Validator for Barista {
    type Object = Cup;

    async fn validate(&self, request: &Request<Cup>, found: &mut Findings) -> Result<(), Denial> {
        if request.operation.wanted().is_some_and(|cup| cup.spec.content == "poison") {
            found.invalid("spec.content", "poison", "take coffee");
        }
        Ok(())
    }
}

fn operator() -> Operator {
    Operator::new("cups").version("1.2.3").crd::<Cup>().part(serve)
}

fn serve(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    setup.defaulter(Barista)?;
    setup.validator(Barista)?.name("vcup.operator.windlass.dev").on_delete().fails_open();
    let cups = setup.cache().reader::<MetadataOnly<Cup>>(&setup.scope());
    let house = setup.settings().own_namespace.clone().unwrap_or_default();
    let menu = Selection::all().in_namespace(house).fields("metadata.name=menu")?;
    let menu = setup.cache().reader::<MetadataOnly<ConfigMap>>(&menu);
    let controller = Controller::for_(&cups)
        .watches(&menu, |_| Vec::new())
        .build(|_: ObjectKey| async { Ok(Requeue::OnChange) })?;
    setup.needs(Access::none().finalizes::<Cup>());
    Ok(setup.controller(controller)?)
}

fn file(manifests: &Manifests, name: &str) -> Result<Vec<Value>> {
    Ok(rights::file(manifests.files(), name)?)
}

fn rules(objects: &[Value], kind: &str) -> Vec<String> {
    let of_kind = objects.iter().filter(|object| object["kind"] == kind);
    let rules = of_kind.flat_map(|object| object["rules"].as_array().unwrap().clone());
    let list = |value: &Value| {
        value
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
            .unwrap_or_default()
    };
    rules
        .map(|rule| {
            format!(
                "{} [{}] {}",
                list(&rule["resources"]),
                list(&rule["resourceNames"]),
                list(&rule["verbs"])
            )
        })
        .collect()
}

#[test]
fn rights_are_granted_in_the_namespace_and_for_the_names_that_need_them() -> Result<()> {
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator).namespace("house"))?;
    let objects = file(&manifests, "rbac.yaml")?;
    assert_eq!(
        rules(&objects, "ClusterRole"),
        [
            "mutatingwebhookconfigurations,validatingwebhookconfigurations [cups.house] get,list,watch,patch",
            "cups [] get,list,watch,patch",
        ]
    );
    // Rights to objects of its own namespace are granted there only.
    assert_eq!(
        rules(&objects, "Role"),
        [
            "configmaps [menu] get,list,watch",
            "secrets [] create",
            "secrets [cups-webhooks] get,list,watch,patch"
        ]
    );

    let manifests =
        Manifests::of(&operator, &Install::of(&operator).namespace("house").watching(["a", "b"]))?;
    let objects = file(&manifests, "rbac.yaml")?;
    let namespaces: Vec<_> = objects
        .iter()
        .filter(|object| object["kind"] == "Role")
        .map(|role| role["metadata"]["namespace"].as_str())
        .collect();
    assert_eq!(namespaces, [Some("a"), Some("b"), Some("house")]);
    assert_eq!(rules(&objects, "ClusterRole").len(), 1, "only what has no namespace");
    let deployment = &file(&manifests, "deployment.yaml")?[0];
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[1], json!({"name": "WATCH_NAMESPACE", "value": "a,b"}));
    Ok(())
}

#[test]
fn manifests_are_the_same_every_time_and_stale_ones_are_named() -> Result<()> {
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator))?;
    assert_eq!(manifests, Manifests::of(&operator, &Install::of(&operator))?);
    let directory = tempfile::tempdir()?;
    let names = manifests.write(directory.path())?;
    assert!(names.contains(&"webhooks.yaml") && manifests.check(directory.path()).is_ok());

    std::fs::write(directory.path().join("rbac.yaml"), "more: rights\n")?;
    std::fs::remove_file(directory.path().join("crds.yaml"))?;
    let stale = manifests.check(directory.path()).unwrap_err();
    assert_eq!(stale.files, [("crds.yaml".into(), "is missing"), ("rbac.yaml".into(), "is out of date")]);
    assert!(stale.to_string().contains("cups manifests --out"), "{stale}");

    // Without webhooks there is no file for them, and a file that is left over is reported.
    let plain = Operator::new("plain");
    let plain = Manifests::of(&plain, &Install::of(&plain))?;
    plain.write(directory.path())?;
    let stale = plain.check(directory.path()).unwrap_err();
    let left: Vec<&str> = stale.files.iter().map(|(file, _)| &**file).collect();
    assert_eq!(left, ["user-roles.yaml", "webhooks.yaml"], "{stale}");
    Ok(())
}

#[test]
fn a_kind_with_conversions_is_converted_by_the_operators_webhook() -> Result<()> {
    let operator =
        Operator::new("cups").crd::<Cup>().part(|setup| Ok(setup.converter(Converter::<Cup>::hub())?));
    let manifests = Manifests::of(&operator, &Install::of(&operator).namespace("house"))?;
    let conversion = &file(&manifests, "crds.yaml")?[0]["spec"]["conversion"];
    assert_eq!(conversion["strategy"], "Webhook");
    let service = json!({"name": "cups-webhooks", "namespace": "house", "path": "/convert", "port": 443});
    assert_eq!(conversion["webhook"]["clientConfig"]["service"], service);
    let webhooks = file(&manifests, "webhooks.yaml")?;
    assert_eq!(
        (webhooks.len(), &webhooks[0]["kind"]),
        (1, &json!("Service")),
        "nothing is admitted, only converted"
    );
    let definitions = "customresourcedefinitions [cups.operator.windlass.dev] get,list,watch,patch";
    assert!(rules(&file(&manifests, "rbac.yaml")?, "ClusterRole").contains(&definitions.to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_part_that_cannot_be_set_up_is_an_error_before_anything_runs() -> Result<()> {
    let operator = Operator::new("broken").part(|_| Err("the stars are not right".into()));
    let nowhere = kube::Config::new("http://127.0.0.1:9".parse()?);
    let error = operator.assemble(nowhere, &Settings::default()).unwrap_err();
    assert_eq!(error.to_string(), "a part of broken cannot be set up: the stars are not right");
    Ok(())
}

/// Applies the manifests to the API server, which calls our webhooks with the CA certificate that the
/// operator has written into the configurations, under exactly the rights that the manifests grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_asks_the_webhooks_that_the_manifests_register() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Cup::crd()]).await?;
    let namespace = env.namespace("cups").await?;
    let home = namespace.name();
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator).namespace(home).namespaced())?;
    let user = namespace.client_for("cups", &rights::granted(manifests.files())?).await?;
    let mark = env.requests()?.mark()?;

    let settings = Settings {
        own_namespace: Some(home.to_owned()),
        webhooks: Some(([127, 0, 0, 1], 0).into()),
        webhook_names: ["127.0.0.1".to_owned()].into(),
        ..Settings::default().in_namespaces([home])
    };
    let process = operator.assemble(user.config(), &settings)?;
    let address = process.webhooks().context("no webhooks")?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(process.run_until(stop));

    for mut object in file(&manifests, "webhooks.yaml")? {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        // No Service leads out of this control plane: the address is used instead, and nothing else is
        // changed.
        for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            hook["clientConfig"] = json!({"url": format!("https://{address}{path}")});
        }
        let api = api(&env, home, &object);
        let strict = PatchParams {
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::apply("user").force()
        };
        api.patch(&name, &strict, &Patch::Apply(&object)).await?;
        eventually(format!("the authority in {name}"), || async {
            let found = api.get(&name).await.map_err(|error| error.to_string())?;
            let hooks = found.data["webhooks"].as_array().cloned().unwrap_or_default();
            let trusted = hooks.iter().all(|hook| hook["clientConfig"]["caBundle"].is_string());
            if trusted { Ok(()) } else { Err(format!("{hooks:?}")) }
        })
        .await?;
    }

    let cups = namespace.api::<Cup>();
    // The API server learns of a configuration by its own watch.
    let mut number = 0;
    let filled = eventually("a cup to be filled by the webhook", || {
        number += 1;
        let cup = Cup::new(&format!("cup-{number}"), CupSpec { content: String::new() });
        let cups = cups.clone();
        async move {
            match cups.create(&PostParams::default(), &cup).await {
                Ok(cup) if cup.spec.content.is_empty() => Err("it was not asked".to_owned()),
                Ok(cup) => Ok(cup),
                Err(error) => Err(error.to_string()),
            }
        }
    })
    .await?;
    assert_eq!(filled.spec.content, "coffee");
    let refused = eventually("poison to be refused", || {
        number += 1;
        let cup = Cup::new(&format!("cup-{number}"), CupSpec { content: "poison".into() });
        let cups = cups.clone();
        async move {
            match cups.create(&PostParams::default(), &cup).await {
                Err(kube::Error::Api(status)) => Ok(status.message),
                other => Err(format!("{other:?}")),
            }
        }
    })
    .await?;
    assert!(refused.contains("vcup.operator.windlass.dev") && refused.contains("take coffee"), "{refused}");

    stopper.request();
    running.await??;
    for object in file(&manifests, "webhooks.yaml")? {
        let name = object["metadata"]["name"].as_str().unwrap();
        api(&env, home, &object).delete(name, &DeleteParams::default()).await?;
    }
    let forbidden = env.requests()?.since(mark)?.by_user(user.name()).code(403);
    assert!(forbidden.is_empty(), "a right is missing: {forbidden}");
    Ok(())
}

/// A cup of another sort: its webhook fails closed, so it is nobody else's.
#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(group = "operator.windlass.dev", version = "v1", kind = "Mug", namespaced)]
struct MugSpec {
    #[serde(default)]
    content: String,
}

struct Strict;

impl Validator for Strict {
    type Object = Mug;

    async fn validate(&self, _: &Request<Mug>, _: &mut Findings) -> Result<(), Denial> {
        Ok(())
    }
}

/// After the operator is gone, its webhook refuses every change of a spec; an object can still be labelled,
/// released from a finalizer and deleted.
#[tokio::test(flavor = "multi_thread")]
async fn seam_h2_an_object_can_be_deleted_though_the_webhook_is_dead() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&[Mug::crd()]).await?;
    let namespace = env.namespace("dead").await?;
    let home = namespace.name();
    let closed = Operator::new("mugs").version("1.2.3").crd::<Mug>().part(|setup: &mut Setup<'_>| {
        setup.validator(Strict)?;
        let mugs = setup.cache().reader::<MetadataOnly<Mug>>(&setup.scope());
        Ok(setup
            .controller(Controller::for_(&mugs).build(|_: ObjectKey| async { Ok(Requeue::OnChange) })?)?)
    });
    let mugs = namespace.api::<Mug>();
    let mut held = Mug::new("held", MugSpec { content: "coffee".into() });
    held.metadata.finalizers = Some(vec!["operator.windlass.dev/hold".into()]);
    mugs.create(&PostParams::default(), &held).await?;
    let manifests = Manifests::of(&closed, &Install::of(&closed).namespace(home))?;
    for mut object in file(&manifests, "webhooks.yaml")? {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            // No server listens at this address.
            hook["clientConfig"] = json!({"url": "https://127.0.0.1:9/"});
        }
        api(&env, home, &object)
            .patch(&name, &PatchParams::apply("user").force(), &Patch::Apply(&object))
            .await?;
    }
    let merge = |patch: Value| {
        let mugs = mugs.clone();
        async move { mugs.patch("held", &PatchParams::default(), &Patch::Merge(patch)).await }
    };
    eventually("the dead webhook to be called", || async {
        match merge(json!({"spec": {"content": "tea"}})).await {
            Err(kube::Error::Api(status)) if status.message.contains("failed calling webhook") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    merge(json!({"metadata": {"labels": {"is": "labelled"}}})).await?;
    mugs.delete("held", &DeleteParams::default()).await?;
    merge(json!({"metadata": {"finalizers": null}})).await?;
    assert!(mugs.get_opt("held").await?.is_none(), "it is gone");
    for object in file(&manifests, "webhooks.yaml")? {
        let name = object["metadata"]["name"].as_str().unwrap();
        let _ = api(&env, home, &object).delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

#[test]
fn seam_h4_only_pods_whose_webhooks_answer_are_called_and_one_of_two_always_does() -> Result<()> {
    let operator = operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator))?;
    let service = &file(&manifests, "webhooks.yaml")?[0];
    assert_eq!(service["spec"]["publishNotReadyAddresses"], Value::Null);
    let workload = file(&manifests, "deployment.yaml")?;
    let pod = &workload[0]["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["readinessProbe"]["httpGet"]["path"], "/readyz/webhooks");
    assert_eq!(
        (&workload[0]["spec"]["replicas"], &workload[1]["kind"]),
        (&json!(2), &json!("PodDisruptionBudget"))
    );
    assert_eq!(pod["topologySpreadConstraints"][0]["topologyKey"], "kubernetes.io/hostname");
    let args = pod["containers"][0]["args"].as_array().unwrap();
    assert!(args.contains(&json!("--webhook-linger=5")), "{args:?}");
    Ok(())
}

fn api(env: &TestEnv, namespace: &str, object: &Value) -> Api<DynamicObject> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if object["metadata"]["namespace"].is_string() {
        Api::namespaced_with(env.client(), namespace, &resource)
    } else {
        Api::all_with(env.client(), &resource)
    }
}
