//! The kinds on a real API server: what is accepted, what is filled in, what is refused, and what is
//! converted.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use harbor_operator::api::harbor::HarborCommon;
use harbor_operator::api::validation::{Previous, VersionRules, validators};
use harbor_operator::api::{
    ChartMuseum, Core, Exporter, Harbor, HarborCluster, JobService, NotaryServer, NotarySigner, Portal,
    Registry, RegistryController, Trivy, conversion, definitions,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_operator::{Operator, Settings};
use windlass_runtime::manager::Stop;
use windlass_runtime::webhook::Findings;
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

/// Size in bytes of the largest annotation that `kubectl apply` can store.
const LIMIT: usize = 262_144;

fn manifests(name: &str) -> Result<Vec<Value>> {
    let path = format!("{}/tests/manifests/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    Ok(serde_saphyr::from_multiple(&std::fs::read_to_string(path)?)?)
}

fn api(client: &Client, namespace: &str, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let (group, version) =
        text("apiVersion").split_once('/').map(|(g, v)| (g.to_owned(), v.to_owned())).unwrap();
    let mut resource = ApiResource::from_gvk(&GroupVersionKind { group, version, kind: text("kind") });
    if resource.kind == "Trivy" {
        resource.plural = "trivies".into();
    }
    if resource.kind.ends_with("WebhookConfiguration") {
        return Api::all_with(client.clone(), &resource);
    }
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// As `kubectl apply --server-side` does it: fields that the schema does not know are refused.
async fn apply(client: &Client, namespace: &str, object: &Value) -> kube::Result<Value> {
    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("user").force()
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let stored = api(client, namespace, object).patch(name, &strict, &Patch::Apply(object)).await?;
    Ok(serde_json::to_value(stored).unwrap())
}

async fn refusal(client: &Client, namespace: &str, object: &Value) -> String {
    match apply(client, namespace, object).await {
        Err(kube::Error::Api(status)) => status.message,
        other => panic!("not refused: {object}: {other:?}"),
    }
}

/// Everything of `wanted` is in `found`.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| contains(found, wanted))
        }
        _ => found == wanted,
    }
}

/// Without what means nothing: no annotations, and a name that is not there.
fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "annotations" || *value != json!({}));
            for (name, value) in fields.iter_mut() {
                *value = plain(value.take());
                for secret in
                    value.as_array_mut().into_iter().flatten().filter(|_| name == "imagePullSecrets")
                {
                    secret.as_object_mut().unwrap().entry("name").or_insert_with(|| "".into());
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
        _ => {}
    }
    value
}

/// The spec of an object, once through our types.
fn typed(object: &Value) -> Result<Value> {
    fn through<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value> {
        Ok(serde_json::to_value(serde_json::from_value::<K>(object.clone())?)?["spec"].clone())
    }
    match object["kind"].as_str().unwrap() {
        "ChartMuseum" => through::<ChartMuseum>(object),
        "Core" => through::<Core>(object),
        "Exporter" => through::<Exporter>(object),
        "Harbor" => through::<Harbor>(object),
        "HarborCluster" => through::<HarborCluster>(object),
        "JobService" => through::<JobService>(object),
        "NotaryServer" => through::<NotaryServer>(object),
        "NotarySigner" => through::<NotarySigner>(object),
        "Portal" => through::<Portal>(object),
        "Registry" => through::<Registry>(object),
        "RegistryController" => through::<RegistryController>(object),
        "Trivy" => through::<Trivy>(object),
        kind => anyhow::bail!("{kind} is none of ours"),
    }
}

/// Sizes of the definitions as JSON, in bytes, when the rule was introduced. Every client of a cluster
/// downloads them, and the API server keeps them in memory: raise a number only for fields that are worth it.
const RECORDED: [(&str, usize); 12] = [
    ("ChartMuseum", 28_850),
    ("Core", 32_593),
    ("Exporter", 18_867),
    ("Harbor", 125_238),
    ("HarborCluster", 147_648),
    ("JobService", 30_676),
    ("NotaryServer", 17_554),
    ("NotarySigner", 15_100),
    ("Portal", 11_851),
    ("Registry", 57_450),
    ("RegistryController", 13_363),
    ("Trivy", 25_168),
];

#[test]
fn users_no_definition_grows_by_more_than_a_tenth_over_its_recorded_size() {
    let sizes = definitions().into_iter().map(|definition| {
        let size = serde_json::to_string(&definition).unwrap().len();
        (definition.spec.names.kind, size)
    });
    let sizes: BTreeMap<String, usize> = sizes.collect();
    assert_eq!(sizes.len(), RECORDED.len(), "record the size of every kind: {sizes:?}");
    for (kind, recorded) in RECORDED {
        let size = sizes[kind];
        let most = recorded + recorded / 10;
        assert!(size <= most, "{kind} has {size} bytes, at most {most} are allowed (recorded: {recorded})");
        // A number far above the size would hide growth.
        let least = recorded - recorded / 10;
        assert!(size >= least, "{kind} has {size} bytes: record that number instead of {recorded}");
    }
}

#[test]
fn every_definition_can_be_applied_by_kubectl() {
    for definition in definitions() {
        let size = serde_json::to_string(&definition).unwrap().len();
        eprintln!("{:>20} {size:>7} bytes", definition.spec.names.kind);
        assert!(size < LIMIT, "{}", definition.spec.names.kind);
    }
}

#[tokio::test]
async fn upstream_manifests_are_accepted_and_kept_unchanged() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&definitions()).await?;
    let namespace = env.namespace("accepted").await?;
    let (client, home) = (env.client(), namespace.name());
    for object in [manifests("newer")?, manifests("components")?].concat() {
        let named = || format!("{} {}", object["kind"], object["metadata"]["name"]);
        let stored = apply(&client, home, &object).await.with_context(named)?;
        assert!(contains(&stored["spec"], &object["spec"]), "{object}\n{stored}");
        assert_eq!(
            typed(&stored)?,
            plain(stored["spec"].clone()),
            "{}: what we read is what we write",
            named()
        );
    }
    // In the older version too. What it becomes is for the conversion, which this control plane has not.
    for object in manifests("older")? {
        apply(&client, home, &object).await.with_context(|| object["metadata"]["name"].to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn defaults_are_those_of_upstream() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&definitions()).await?;
    let namespace = env.namespace("defaults").await?;
    let mut stored = Vec::new();
    for object in [manifests("newer")?, manifests("components")?].concat() {
        stored.push(apply(&env.client(), namespace.name(), &object).await?);
    }
    let spec = |kind: &str, name: &str| {
        let found = stored.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap()["spec"].clone()
    };
    for defaults in manifests("defaults")? {
        let found = spec(defaults["kind"].as_str().unwrap(), defaults["name"].as_str().unwrap());
        assert!(contains(&found, &defaults["spec"]), "{defaults}\n{found}");
    }
    // Nothing is filled in that was not before.
    assert_eq!(spec("Portal", "c"), json!({"maxConnections": 1024}));
    let external =
        manifests("newer")?.into_iter().find(|object| object["metadata"]["name"] == "external").unwrap();
    let mut expected = external["spec"].clone();
    expected["logLevel"] = "info".into();
    expected["updateStrategyType"] = "RollingUpdate".into();
    expected["storage"]["spec"]["fileSystem"]["registryPersistentVolume"]["maxthreads"] = 100.into();
    assert_eq!(spec("HarborCluster", "external"), expected);
    Ok(())
}

fn changed(base: &Value, path: &str, value: Value) -> Value {
    let mut object = base.clone();
    let (parent, field) = path.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("{path}"));
    parent[field] = value;
    object
}

#[tokio::test]
async fn invalid_objects_are_refused_with_the_field_and_the_remedy() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&definitions()).await?;
    let namespace = env.namespace("refused").await?;
    let all = [manifests("newer")?, manifests("components")?, manifests("older")?].concat();
    let named = |name: &str| all.iter().find(|object| object["metadata"]["name"] == name).unwrap();
    let component = |kind: &str| all.iter().find(|object| object["kind"] == kind).unwrap();
    let (harbor, cluster, old) = (named("minimal"), named("external"), named("old-full-stack"));
    let two = json!({"s3": {"region": "r", "bucket": "b"}, "oss": {
        "accessKeyID": "i", "accessSecretRef": "s", "region": "oss-cn", "bucket": "b"}});
    let minio = |replicas: i32, redirect: bool| {
        json!({"kind": "MinIO", "spec": {
            "minIO": {"replicas": replicas, "volumesPerServer": 1}, "redirect": {"enable": redirect}}})
    };
    let cases = [
        (changed(harbor, "/spec/versoin", "2.6.2".into()), "versoin", "field not declared in schema"),
        (changed(harbor, "/spec/version", "two".into()), "spec.version", "should match"),
        (changed(harbor, "/spec/externalURL", "ftp://x".into()), "spec.externalURL", "should match"),
        (changed(harbor, "/spec/logLevel", "loud".into()), "spec.logLevel", "debug"),
        (changed(harbor, "/spec/redis", json!({})), "spec.redis.host", "Required"),
        (
            changed(harbor, "/spec/exporter", json!({"cache": {"duration": "soon"}})),
            "spec.exporter.cache.duration",
            "should match",
        ),
        (
            changed(harbor, "/spec/imageChartStorage", two),
            "imageChartStorage sets s3 oss",
            "set exactly one of s3",
        ),
        (
            changed(harbor, "/spec/imageChartStorage", json!({})),
            "imageChartStorage sets no storage backend",
            "set exactly one of s3",
        ),
        (
            changed(harbor, "/spec/trace", json!({"enabled": true, "provider": "jaeger"})),
            "trace.provider is jaeger",
            "set jaeger",
        ),
        (
            changed(cluster, "/spec/cache/kind", "RedisFailover".into()),
            "cache.kind is RedisFailover",
            "cache.spec.redisFailover is missing",
        ),
        (
            changed(cluster, "/spec/database/kind", "Zlando/PostgreSQL".into()),
            "database.kind is Zlando/PostgreSQL",
            "database.spec.zlandoPostgreSql is missing",
        ),
        (
            changed(cluster, "/spec/storage/kind", "MinIO".into()),
            "storage.kind is MinIO",
            "set storage.spec.minIO",
        ),
        (changed(cluster, "/spec/storage/kind", "Gcs".into()), "storage.kind is Gcs", "set storage.spec.gcs"),
        (changed(cluster, "/spec/storage", minio(3, false)), "below the 4 volumes", "raise one of them"),
        (changed(cluster, "/spec/storage", minio(4, true)), "redirected to MinIO", "redirect.expose.ingress"),
        (
            changed(component("JobService"), "/spec/loggers", json!({"files": []})),
            "spec.loggers",
            "at least one of files",
        ),
        (
            changed(component("JobService"), "/spec/workerPool/workers", 0.into()),
            "spec.workerPool.workers",
            "greater than or equal to 1",
        ),
        (
            changed(component("Registry"), "/spec/storage/driver", json!({})),
            "driver sets no storage backend",
            "inmemory",
        ),
        (
            changed(component("Core"), "/spec/redis/database", 9.into()),
            "spec.redis.database",
            "less than or equal to 8",
        ),
        (
            changed(old, "/spec/inClusterDatabase/kind", "PostgreSQL".into()),
            "spec.inClusterDatabase.kind",
            "PostgresSQL",
        ),
        (changed(old, "/spec/network", json!({"ipFamilies": []})), "network", "field not declared in schema"),
        (changed(old, "/spec/cache", json!({"kind": "Redis"})), "cache", "field not declared in schema"),
    ];
    for (mut object, what, remedy) in cases {
        object["metadata"]["name"] = "refused".into();
        let message = refusal(&env.client(), namespace.name(), &object).await;
        assert!(message.contains(what) && message.contains(remedy), "{what}, {remedy}: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_null_in_loggers_files_is_kept_and_durations_are_those_of_go() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&definitions()).await?;
    let namespace = env.namespace("odd").await?;
    let (client, home) = (env.client(), namespace.name());
    let all = [manifests("newer")?, manifests("components")?].concat();
    let first = |kind: &str| all.iter().find(|object| object["kind"] == kind).unwrap();
    let loggers = |loggers: Value| changed(first("JobService"), "/spec/loggers", loggers);
    let message = refusal(&client, home, &loggers(json!({"files": null}))).await;
    assert!(message.contains("at least one of files"), "{message}");
    let stored = apply(&client, home, &loggers(json!({"files": null, "stdout": {}}))).await?;
    assert_eq!(stored["spec"]["loggers"], json!({"files": null, "stdout": {"level": "INFO"}}));

    for time in ["0", "500ms", "1.5h", "1h30m", "-1s", "2µs"] {
        let object = changed(first("Harbor"), "/spec/exporter", json!({"cache": {"duration": time}}));
        apply(&client, home, &object).await.with_context(|| time.to_owned())?;
    }
    Ok(())
}

/// Any version but one.
#[derive(Clone)]
struct NotNine;

impl VersionRules for NotNine {
    fn judge(&self, old: Option<&Previous<'_>>, new: &HarborCommon, found: &mut Findings) {
        if new.version == "9.9.9" && old.is_none_or(|old| old.common.version != new.version) {
            found.invalid("spec.version", &new.version, "choose 2.15.2");
        }
    }
}

fn operator() -> Operator {
    Operator::new("harbor-operator")
        .define(definitions)
        .part(conversion::converters)
        .part(|setup| validators(setup, &NotNine, &BTreeSet::new()))
}

/// The whole way: the API server asks our webhooks, about both versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_calls_conversion_and_validation() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let namespace = env.namespace("webhooks").await?;
    let (client, home) = (env.client(), namespace.name().to_owned());
    let operator = operator();
    let settings = Settings {
        own_namespace: Some(home.clone()),
        webhooks: Some(([127, 0, 0, 1], 0).into()),
        webhook_names: ["127.0.0.1".to_owned()].into(),
        ..Settings::default().in_namespaces([&*home])
    };
    let process = operator.assemble(env.config().clone(), &settings)?;
    let address = process.webhooks().context("no webhooks")?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(process.run_until(stop));
    install(&env, &operator, &home, &format!("https://{address}")).await?;

    // Written in the older version, read in the newer one.
    let old = manifests("older")?;
    for object in &old {
        apply(&client, &home, object).await.with_context(|| object["metadata"]["name"].to_string())?;
    }
    let newer = changed(&old[0], "/apiVersion", "goharbor.io/v1beta1".into());
    let read = |object: &Value| {
        let (api, name) =
            (api(&client, &home, object), object["metadata"]["name"].as_str().unwrap().to_owned());
        async move { api.get(&name).await.map(|object| serde_json::to_value(object).unwrap()) }
    };
    let found = read(&newer).await?;
    assert_eq!(found["spec"]["cache"]["kind"], "RedisFailover");
    assert_eq!(found["spec"]["database"]["spec"]["zlandoPostgreSql"]["storage"], "1Gi");
    assert_eq!(found["spec"]["storage"]["spec"]["minIO"]["volumesPerServer"], 2);
    assert_eq!(found["spec"]["registryctl"]["replicas"], 1);
    assert!(contains(&read(&old[0]).await?["spec"], &old[0]["spec"]));

    // Written in the newer version, changed in the older one: nothing is lost.
    let new = manifests("newer")?;
    for object in &new {
        apply(&client, &home, object).await.with_context(|| object["metadata"]["name"].to_string())?;
    }
    for object in &new {
        let before = read(object).await?;
        let older = changed(object, "/apiVersion", "goharbor.io/v1alpha3".into());
        let name = object["metadata"]["name"].as_str().unwrap();
        let patch = Patch::Merge(json!({"spec": {"logLevel": "error"}}));
        api(&client, &home, &older)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .with_context(|| name.to_owned())?;
        let after = read(object).await?;
        assert_eq!(after["spec"], changed(&before, "/spec/logLevel", "error".into())["spec"], "{name}");
        assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    }

    // Judged, in both versions.
    let cluster = new.iter().find(|object| object["metadata"]["name"] == "external").unwrap();
    let switched = changed(cluster, "/spec/cache", json!({"kind": "BuiltIn", "spec": {}}));
    let message = refusal(&client, &home, &switched).await;
    assert!(message.contains("spec.cache.kind: Invalid value: \"BuiltIn\""), "{message}");
    let moved =
        changed(&switched, "/metadata/annotations", json!({"harbor.windlass.dev/data-moved": "cache"}));
    apply(&client, &home, &moved).await?;
    let version = changed(&old[2], "/spec/version", "9.9.9".into());
    let message = refusal(&client, &home, &version).await;
    assert!(message.contains("spec.version: Invalid value: \"9.9.9\": choose 2.15.2"), "{message}");
    let mut lacking = changed(&old[2], "/metadata/name", "lacking".into());
    lacking["spec"].as_object_mut().unwrap().remove("redis");
    let message = refusal(&client, &home, &lacking).await;
    assert!(message.contains("spec.redis: Required value: set the address of Redis"), "{message}");

    stopper.request();
    running.await??;
    Ok(())
}

/// Bad values reached the operator, and blocked every other change there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_n13_n17_the_api_server_refuses_bad_values_and_lets_other_changes_pass() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let namespace = env.namespace("bad-values").await?;
    let (client, home) = (env.client(), namespace.name().to_owned());
    let operator = operator();
    let settings = Settings {
        own_namespace: Some(home.clone()),
        webhooks: Some(([127, 0, 0, 1], 0).into()),
        webhook_names: ["127.0.0.1".to_owned()].into(),
        ..Settings::default().in_namespaces([&*home])
    };
    // Stored before there was a webhook to refuse it.
    env.install_crds(&definitions()).await?;
    let own = |volume: Value| json!({"kind": "BuiltIn", "spec": {"builtIn": volume}});
    let good = json!({
        "apiVersion": "goharbor.io/v1beta1", "kind": "HarborCluster", "metadata": {"name": "volumes"},
        "spec": {
            "externalURL": "https://harbor.example.com", "harborAdminPasswordRef": "admin", "version": "2.15.2",
            "expose": {"core": {"ingress": {"host": "harbor.example.com"}}},
            "cache": own(json!({})), "database": own(json!({"storage": "10Gi"})), "storage": own(json!({})),
        },
    });
    let bad = changed(&good, "/metadata/name", "stored".into());
    let bad = changed(&bad, "/spec/database", own(json!({"storage": "ten gigs"})));
    let bad = changed(&bad, "/spec/core", json!({"extraEnv": [{"name": "A", "vlaue": "b"}]}));
    apply(&client, &home, &bad).await?;

    let process = operator.assemble(env.config().clone(), &settings)?;
    let address = process.webhooks().context("no webhooks")?;
    let (stopper, stop) = Stop::pair();
    let running = tokio::spawn(process.run_until(stop));
    install(&env, &operator, &home, &format!("https://{address}")).await?;

    apply(&client, &home, &good).await?;
    let cases = [
        (
            "/spec/database",
            own(json!({"storage": "ten gigs"})),
            "spec.database.spec.builtIn.storage: Invalid value: \"ten gigs\"",
        ),
        ("/spec/database", own(json!({"storage": "9Gi"})), "a volume cannot shrink: write 10Gi or more"),
        (
            "/spec/cache",
            own(json!({"storageClassName": "Fast SSD"})),
            "spec.cache.spec.builtIn.storageClassName: Invalid value",
        ),
        (
            "/spec/core",
            json!({"extraEnv": [{"name": "A", "vlaue": "b"}]}),
            "spec.core.extraEnv[0].vlaue: Forbidden",
        ),
        (
            "/spec/core",
            json!({"affinity": {"nodeAfinity": {"a": 1}}}),
            "spec.core.affinity.nodeAfinity: Forbidden",
        ),
        (
            "/spec/core",
            json!({"resources": {"limits": {"memory": "lots"}}}),
            "spec.core.resources.limits.memory: Invalid value: \"lots\"",
        ),
    ];
    for (place, value, expected) in cases {
        let message = refusal(&client, &home, &changed(&good, place, value)).await;
        assert!(message.contains(expected), "{expected} in {message}");
    }
    // Other fields of what was stored before can change, and its bad values can be mended.
    apply(&client, &home, &changed(&bad, "/spec/externalURL", "https://other.example.com".into())).await?;
    let worse = changed(&bad, "/spec/database", own(json!({"storage": "eleven gigs"})));
    let message = refusal(&client, &home, &worse).await;
    assert!(message.contains("\"eleven gigs\"") && !message.contains("vlaue"), "{message}");
    apply(&client, &home, &changed(&bad, "/spec/database", own(json!({"storage": "10Gi"})))).await?;

    stopper.request();
    running.await??;
    Ok(())
}

/// Installs the operator's manifests; by its address, since no Service leads out of this control plane.
async fn install(env: &TestEnv, operator: &Operator, home: &str, url: &str) -> Result<()> {
    let manifests = Manifests::of(operator, &Install::of(operator).namespace(home).namespaced())?;
    let objects = |file: &str| -> Result<Vec<Value>> {
        let (_, text) = manifests.files().find(|(name, _)| *name == file).context("no such file")?;
        Ok(serde_saphyr::from_multiple(text)?)
    };
    let mut definitions: Vec<CustomResourceDefinition> = Vec::new();
    for mut definition in objects("crds.yaml")? {
        let path =
            definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"].as_str().unwrap();
        let config = json!({"url": format!("{url}{path}")});
        definition["spec"]["conversion"]["webhook"]["clientConfig"] = config;
        definitions.push(serde_json::from_value(definition)?);
    }
    env.install_crds(&definitions).await?;
    let installed: Api<CustomResourceDefinition> = Api::all(env.client());
    for definition in &definitions {
        let name = definition.name_any();
        eventually(format!("the authority in {name}"), || async {
            let found = installed.get(&name).await.map_err(|error| error.to_string())?;
            let config = found.spec.conversion.and_then(|conversion| conversion.webhook?.client_config);
            config.and_then(|config| config.ca_bundle).map(drop).ok_or_else(|| "not there".to_owned())
        })
        .await?;
    }
    for mut object in objects("webhooks.yaml")? {
        let Some(hooks) = object.get_mut("webhooks").and_then(Value::as_array_mut) else { continue };
        for hook in hooks {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            hook["clientConfig"] = json!({"url": format!("{url}{path}")});
        }
        apply(&env.client(), home, &object).await?;
        let (api, name) = (api(&env.client(), home, &object), object["metadata"]["name"].as_str().unwrap());
        eventually(format!("the authority in {name}"), || async {
            let found = api.get(name).await.map_err(|error| error.to_string())?;
            let hooks = found.data["webhooks"].as_array().cloned().unwrap_or_default();
            let trusted = hooks.iter().all(|hook| hook["clientConfig"]["caBundle"].is_string());
            if trusted { Ok(()) } else { Err(format!("{hooks:?}")) }
        })
        .await?;
    }
    // The API server learns of definitions and configurations by watches of its own: until it asks, nothing
    // is refused.
    let bad =
        self::manifests("older")?.into_iter().find(|object| object["metadata"]["name"] == "old").unwrap();
    let bad = changed(&changed(&bad, "/metadata/name", "probe".into()), "/spec/version", "9.9.9".into());
    eventually("the API server to ask", || async {
        match apply(&env.client(), home, &bad).await {
            Err(kube::Error::Api(status)) if status.message.contains("choose 2.15.2") => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => {
                let _ =
                    api(&env.client(), home, &bad).delete("probe", &kube::api::DeleteParams::default()).await;
                Err("it was not asked".to_owned())
            }
        }
    })
    .await?;
    Ok(())
}
