//! Tests of controllers on a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)] // a test fails by panicking

use crate::operator;

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use operator::{Mirror, Operator, Runs, cache, client, labelled, object_is, original, value};
use serde_json::json;
use windlass_runtime::cache::{Full, MetadataOnly, OfKind, Selection, Shape};
use windlass_runtime::client::{Delete, Failure, Patch as Changes};
use windlass_runtime::controller::{Controller, Requeue, Watch};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::object::finalizers;
use windlass_runtime::resource::ResourceType;
use windlass_testenv::proxy::{Answer, Fault, Match, RequestVerb};
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

fn patch(value: &str) -> Patch<serde_json::Value> {
    Patch::Merge(json!({"data": {"value": value}}))
}

#[tokio::test]
async fn a_controller_creates_updates_and_repairs_owned_objects_and_then_sends_no_requests() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("mirror").await?;
    let user = namespace.client_for("mirror", &Rules::everything()).await?;
    let configs = namespace.api::<ConfigMap>();
    configs.create(&PostParams::default(), &original("before", "1")).await?;

    let runs = Runs::default();
    let client = client(user.config())?;
    let watched = cache(&client);
    let mirror = Mirror::new(&client, &watched, namespace.name())?.controller(&runs)?;
    let running = Operator::start(&watched, [mirror])?;
    running.ready().await?;
    object_is(&configs, "before-copy", "is made", |copy| value(copy) == Some("1")).await?;

    configs.create(&PostParams::default(), &original("after", "1")).await?;
    object_is(&configs, "after-copy", "is made", |copy| value(copy) == Some("1")).await?;
    configs.patch("after", &PatchParams::default(), &patch("2")).await?;
    object_is(&configs, "after-copy", "follows", |copy| value(copy) == Some("2")).await?;
    configs.patch("after-copy", &PatchParams::default(), &patch("meddled")).await?;
    object_is(&configs, "after-copy", "is repaired", |copy| value(copy) == Some("2")).await?;
    configs.delete("after-copy", &DeleteParams::default()).await?;
    object_is(&configs, "after-copy", "is made again", |copy| value(copy) == Some("2")).await?;

    let key = format!("{}/after", namespace.name());
    let before = runs.of(&key);
    configs.delete("after", &DeleteParams::default()).await?;
    runs.at_least(&key, before + 1).await?;
    object_is(&configs, "after-copy", "goes with its owner", |copy| copy.is_none()).await?;
    assert!(
        running.metric("controller_runtime_reconcile_total{controller=\"mirror\",result=\"success\"}") > 4.0
    );
    assert_eq!(running.metric("controller_runtime_reconcile_errors_total{controller=\"mirror\"}"), 0.0);
    running.stop().await?;

    // A new process over a converged namespace reads, and writes nothing.
    let mark = env.requests()?.mark()?;
    let runs = Runs::default();
    let watched = cache(&client);
    let mirror = Mirror::new(&client, &watched, namespace.name())?.controller(&runs)?;
    let running = Operator::start(&watched, [mirror])?;
    runs.at_least(&format!("{}/before", namespace.name()), 1).await?;
    running.stop().await?;
    let requests = env.requests()?.since(mark)?.by_user(user.name()).writes();
    assert!(requests.is_empty(), "{requests}");
    Ok(())
}

#[tokio::test]
async fn a_change_of_a_mapped_kind_reconciles_the_mapped_keys() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("mapped").await?;
    let client = client(namespace.client_for("mapped", &Rules::everything()).await?.config())?;
    let watched = cache(&client);
    let configs = watched.reader::<Full<ConfigMap>>(&labelled(namespace.name(), "mirror=original")?);
    let secrets = watched.reader::<MetadataOnly<Secret>>(&Selection::all().in_namespace(namespace.name()));
    let users_of = {
        let configs = configs.clone();
        move |secret: &MetadataOnly<Secret>| {
            let name = secret.name().to_owned();
            let users =
                configs.list().into_iter().filter(move |config| value(Some(config)) == Some(name.as_str()));
            users.map(|config| config.meta().key.clone()).collect::<Vec<_>>()
        }
    };
    let runs = Runs::default();
    let count = runs.clone();
    let controller =
        Controller::for_(&configs).watches(&secrets, users_of).build(move |key: ObjectKey| {
            count.count(&key);
            async { Ok(Requeue::OnChange) }
        })?;
    let running = Operator::start(&watched, [controller])?;
    running.ready().await?;
    let api = namespace.api::<ConfigMap>();
    api.create(&PostParams::default(), &original("uses", "password")).await?;
    api.create(&PostParams::default(), &original("does-not", "other")).await?;
    let key = |name: &str| format!("{}/{name}", namespace.name());
    runs.at_least(&key("uses"), 1).await?;
    runs.at_least(&key("does-not"), 1).await?;
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "password"}}))?;
    namespace.api::<Secret>().create(&PostParams::default(), &secret).await?;
    runs.at_least(&key("uses"), 2).await?;
    assert_eq!(runs.of(&key("does-not")), 1);
    running.stop().await
}

#[tokio::test]
async fn two_controllers_share_one_watch_and_it_ends_with_the_last() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("shared").await?;
    let user = namespace.client_for("shared", &Rules::everything()).await?;
    let proxy = env.fault_proxy().await?;
    let mark = env.requests()?.mark()?;
    let client = client(user.config_through(&proxy.url())?)?;
    let watched = cache(&client);
    let selection = Selection::all().in_namespace(namespace.name());
    let (one, two) = (Runs::default(), Runs::default());
    let controller = |name: &str, runs: &Runs| {
        let runs = runs.clone();
        // Each controller declares its own reader, as two authors would.
        Controller::for_(watched.reader::<Full<ConfigMap>>(&selection)).name(name).build(
            move |key: ObjectKey| {
                runs.count(&key);
                async { Ok(Requeue::OnChange) }
            },
        )
    };
    let running = Operator::start(&watched, [controller("one", &one)?, controller("two", &two)?])?;
    running.ready().await?;
    namespace.api::<ConfigMap>().create(&PostParams::default(), &original("a", "1")).await?;
    let key = format!("{}/a", namespace.name());
    one.at_least(&key, 1).await?;
    two.at_least(&key, 1).await?;
    let configs = Match::watches().resource("configmaps");
    let requests = env.requests()?.since(mark)?.by_user(user.name());
    assert_eq!(requests.resource("configmaps").verb("watch").count(), 1, "{requests}");
    assert_eq!(proxy.open_watches(&configs), 1);
    running.stop().await?;
    eventually("the watch ends", || async {
        match proxy.open_watches(&configs) {
            0 => Ok(()),
            open => Err(format!("{open} are open")),
        }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_panicking_and_a_hanging_key_delay_no_other() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("panics").await?;
    let client = client(namespace.client_for("panics", &Rules::everything()).await?.config())?;
    let watched = cache(&client);
    let configs = watched.reader::<Full<ConfigMap>>(&labelled(namespace.name(), "mirror=original")?);
    let runs = Runs::default();
    let count = runs.clone();
    let controller = Controller::for_(&configs).name("fragile").deadline(Duration::from_millis(300)).build(
        move |key: ObjectKey| {
            let attempt = count.count(&key);
            async move {
                match key.name() {
                    "panics" if attempt <= 3 => panic!("on purpose"),
                    "hangs" if attempt == 1 => std::future::pending().await,
                    _ => Ok(Requeue::OnChange),
                }
            }
        },
    )?;
    let running = Operator::start(&watched, [controller])?;
    running.ready().await?;
    let api = namespace.api::<ConfigMap>();
    for name in ["panics", "hangs", "fine"] {
        api.create(&PostParams::default(), &original(name, "1")).await?;
    }
    let key = |name: &str| format!("{}/{name}", namespace.name());
    runs.at_least(&key("fine"), 1).await?;
    runs.at_least(&key("panics"), 4).await?;
    runs.at_least(&key("hangs"), 2).await?;
    let metric = |name: &str| running.metric(&format!("controller_runtime_{name}{{controller=\"fragile\"}}"));
    assert_eq!((metric("reconcile_panics_total"), metric("reconcile_timeouts_total")), (3.0, 1.0));
    running.stop().await
}

#[tokio::test]
async fn a_storm_of_conflicts_causes_no_errors() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("conflicts").await?;
    let user = namespace.client_for("conflicts", &Rules::everything()).await?;
    let proxy = env.fault_proxy().await?;
    let client = client(user.config_through(&proxy.url())?)?;
    let watched = cache(&client);
    let runs = Runs::default();
    let mirror = Mirror::new(&client, &watched, namespace.name())?.controller(&runs)?;
    let storm = proxy.add(
        Fault::on(Match::verb(RequestVerb::Apply).resource("configmaps")).times(7).then(Answer::conflict()),
    );
    let running = Operator::start(&watched, [mirror])?;
    running.ready().await?;
    let configs = namespace.api::<ConfigMap>();
    configs.create(&PostParams::default(), &original("a", "1")).await?;
    object_is(&configs, "a-copy", "is made", |copy| value(copy) == Some("1")).await?;
    assert_eq!(storm.hits(), 7);
    let total = |result: &str| {
        running.metric(&format!(
            "controller_runtime_reconcile_total{{controller=\"mirror\",result=\"{result}\"}}"
        ))
    };
    assert_eq!((total("requeue"), total("error")), (7.0, 0.0));
    running.stop().await
}

/// A kind that is unique to this test run.
#[derive(serde::Deserialize)]
struct Widget {
    metadata: Meta,
}

fn widgets_group() -> &'static str {
    static GROUP: OnceLock<String> = OnceLock::new();
    GROUP.get_or_init(|| {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        format!("w{now}.windlass.test")
    })
}

impl Shape for Widget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for Widget {
    fn resource() -> ResourceType {
        ResourceType {
            group: Cow::Borrowed(widgets_group()),
            version: Cow::Borrowed("v1"),
            kind: Cow::Borrowed("Widget"),
            plural: Cow::Borrowed("widgets"),
            namespaced: true,
        }
    }
}

fn widgets() -> CustomResourceDefinition {
    let group = widgets_group();
    serde_json::from_value(json!({
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }))
    .expect("a definition")
}

#[tokio::test]
async fn d10_a_controller_waits_for_a_missing_kind_and_starts_when_it_is_installed() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("missing").await?;
    let client = client(namespace.client_for("missing", &Rules::everything()).await?.config())?;
    let watched = cache(&client);
    let selection = Selection::all().in_namespace(namespace.name());
    let configs = watched.reader::<Full<ConfigMap>>(&labelled(namespace.name(), "mirror=original")?);
    let widgets_read = watched.reader::<Widget>(&selection);
    let (needs, goes_without) = (Runs::default(), Runs::default());
    let build = |builder: windlass_runtime::controller::Builder<_>, runs: &Runs| {
        let runs = runs.clone();
        builder.build(move |key: ObjectKey| {
            runs.count(&key);
            async { Ok(Requeue::OnChange) }
        })
    };
    let itself = |widget: &Widget| [widget.meta().key.clone()];
    let controllers = [
        build(Controller::for_(&configs).name("needs").watches(&widgets_read, itself), &needs)?,
        build(
            Controller::for_(&configs)
                .name("goes-without")
                .watches(Watch::of(&widgets_read).optional(), itself),
            &goes_without,
        )?,
    ];
    let running = Operator::start(&watched, controllers)?;
    namespace.api::<ConfigMap>().create(&PostParams::default(), &original("a", "1")).await?;
    let key = |name: &str| format!("{}/{name}", namespace.name());
    goes_without.at_least(&key("a"), 1).await?;
    let advice = format!("install the CRD widgets.{}", widgets_group());
    eventually("readiness says what is missing", || async {
        let report = running.report();
        if report.contains(&advice) && !running.is_ready() { Ok(()) } else { Err(report) }
    })
    .await?;
    assert_eq!(needs.of(&key("a")), 0);

    env.install_crds(&[widgets()]).await?;
    needs.at_least(&key("a"), 1).await?;
    running.ready().await?;
    let kind =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(widgets_group(), "v1", "Widget"), "widgets");
    let api = kube::Api::<DynamicObject>::namespaced_with(env.client(), namespace.name(), &kind);
    api.create(&PostParams::default(), &DynamicObject::new("w", &kind)).await?;
    needs.at_least(&key("w"), 1).await?;
    goes_without.at_least(&key("w"), 1).await?;
    running.stop().await
}

#[tokio::test]
async fn finalizer_patches_do_not_undo_concurrent_changes() -> Result<()> {
    const OURS: &str = "windlass.test/ours";
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("finalizers").await?;
    let client = client(namespace.client_for("finalizers", &Rules::everything()).await?.config())?;
    let configs = client.objects::<ConfigMap>();
    let key = ObjectKey::namespaced(namespace.name(), "a");
    let read = configs.create(&key, &original("a", "1")).await?;

    let addition = finalizers::addition(&read.metadata, OURS)?.expect("it is not there");
    let changed = namespace.api::<ConfigMap>().patch("a", &PatchParams::default(), &patch("2")).await?;
    let stale = configs.patch(&key, &Changes::Json(addition), "t").await.unwrap_err();
    assert!(matches!(stale.failure(), Failure::Invalid(_)), "a failed test of a JSON patch: {stale}");
    let addition = finalizers::addition(&changed.metadata, OURS)?.expect("it is not there");
    let held = configs.patch(&key, &Changes::Json(addition), "t").await?;
    assert_eq!(held.metadata.finalizers, Some(vec![OURS.to_owned()]));

    configs.delete(&key, &Delete::any()).await?;
    let going = configs.get(&key).await?;
    assert!(finalizers::addition(&going.metadata, "windlass.test/too-late").is_err());
    let removal = finalizers::removal(&going.metadata, OURS).expect("it is there");
    configs.patch(&key, &Changes::Json(removal), "t").await?;
    assert!(configs.find(&key).await?.is_none());
    Ok(())
}
