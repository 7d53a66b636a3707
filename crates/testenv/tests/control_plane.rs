//! The shared control plane does what a Kubernetes does.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run, rule};

fn deployment(name: &str, replicas: u32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "example/image:1"}]},
            },
        },
    }))
    .unwrap()
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value},
    }))
    .unwrap()
}

#[tokio::test]
async fn a_deployment_of_three_becomes_available_and_is_garbage_collected() -> Result<()> {
    let env = or_not_run!(TestEnv::portable().await);
    let namespace = env.namespace("deployment").await?;
    let deployments = namespace.api::<Deployment>();
    deployments.create(&PostParams::default(), &deployment("web", 3)).await?;
    eventually("3 available replicas", || async {
        let status = deployments.get("web").await.map_err(|e| e.to_string())?.status.unwrap_or_default();
        if status.available_replicas == Some(3) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await?;
    let pods = namespace.api::<Pod>();
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 3);

    deployments.delete("web", &kube::api::DeleteParams::default()).await?;
    let sets = namespace.api::<ReplicaSet>();
    eventually("the children to be collected", || async {
        let sets = sets.list(&ListParams::default()).await.map_err(|e| e.to_string())?.items.len();
        let pods = pods.list(&ListParams::default()).await.map_err(|e| e.to_string())?.items.len();
        if sets + pods == 0 { Ok(()) } else { Err(format!("{sets} ReplicaSets and {pods} Pods")) }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_is_bound_and_its_volume_goes_with_it() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("claim").await?;
    let claims = namespace.api::<PersistentVolumeClaim>();
    let claim = |name: &str, volume: &str| {
        serde_json::from_value::<PersistentVolumeClaim>(json!({
            "metadata": {"name": name, "annotations": {"testenv.windlass.dev/volume": volume}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }))
    };
    claims.create(&PostParams::default(), &claim("held", "pending")?).await?;
    claims.create(&PostParams::default(), &claim("data", "bound")?).await?;
    let phase = |name: &'static str| {
        let claims = claims.clone();
        async move {
            let status = claims.get(name).await.map_err(|e| e.to_string())?.status.unwrap_or_default();
            Ok::<_, String>(status.phase.unwrap_or_default())
        }
    };
    eventually("the claim to be bound", || async {
        let phase = phase("data").await?;
        if phase == "Bound" { Ok(()) } else { Err(phase) }
    })
    .await?;
    assert_eq!(phase("held").await.unwrap(), "Pending");

    let volume = claims.get("data").await?.spec.and_then(|spec| spec.volume_name).context("a volume")?;
    claims.delete("data", &kube::api::DeleteParams::default()).await?;
    let volumes: Api<k8s_openapi::api::core::v1::PersistentVolume> = Api::all(env.client());
    eventually("the volume to be deleted", || async {
        match volumes.get_opt(&volume).await.map_err(|e| e.to_string())? {
            None => Ok(()),
            Some(volume) => Err(format!("{:?}", volume.status)),
        }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_field_of_another_manager_is_a_conflict_that_names_it() -> Result<()> {
    let env = or_not_run!(TestEnv::portable().await);
    let namespace = env.namespace("conflict").await?;
    let maps = namespace.api::<ConfigMap>();
    maps.patch("m", &PatchParams::apply("first-manager"), &Patch::Apply(config_map("m", "a"))).await?;
    let error = maps
        .patch("m", &PatchParams::apply("second-manager"), &Patch::Apply(config_map("m", "b")))
        .await
        .unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!(status.code, 409);
    assert!(status.message.contains("first-manager"), "{}", status.message);
    Ok(())
}

fn widget_definition(group: &str) -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {
                    "type": "object",
                    "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
                    "x-kubernetes-validations": [
                        {"rule": "self.low <= self.high", "message": "low must not be above high"},
                    ],
                }},
            }}}],
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn a_rule_of_a_definition_refuses_what_it_should() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let definition = widget_definition("cel.testenv.windlass.dev");
    env.install_crds(std::slice::from_ref(&definition)).await?;
    let namespace = env.namespace("cel").await?;
    let resource = ApiResource {
        group: definition.spec.group.clone(),
        version: "v1".to_owned(),
        api_version: format!("{}/v1", definition.spec.group),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    };
    let widgets: Api<DynamicObject> = Api::namespaced_with(env.client(), namespace.name(), &resource);
    let widget = |low: i64, high: i64| {
        DynamicObject::new("w", &resource).data(json!({"spec": {"low": low, "high": high}}))
    };
    let error = widgets.create(&PostParams::default(), &widget(2, 1)).await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!(status.code, 422);
    assert!(status.message.contains("low must not be above high"), "{}", status.message);
    widgets.create(&PostParams::default(), &widget(1, 2)).await?;
    Ok(())
}

#[tokio::test]
async fn a_definition_that_others_use_does_not_change_under_them() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let mut definition = widget_definition("shared.testenv.windlass.dev");
    env.install_crds(std::slice::from_ref(&definition)).await?;
    env.install_crds(std::slice::from_ref(&definition)).await.context("the same once more")?;
    definition.spec.names.short_names = Some(vec!["wdg".to_owned()]);
    let error = env.install_crds(&[definition]).await.unwrap_err();
    assert!(matches!(error, windlass_testenv::Error::CrdDiffers { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn objects_of_an_installed_kind_can_own_others_at_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("owners").await?;
    // New to the API server in every run: what it has known for a while proves nothing.
    let group = format!("{}.testenv.windlass.dev", namespace.name());
    let rights = Rules::default().in_namespace(rule("", &["configmaps"], &["create"])).cluster_wide(rule(
        &group,
        &["widgets/finalizers"],
        &["update"],
    ));
    let user = namespace.client_for("operator", &rights).await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client()?, namespace.name());
    let mut child = config_map("child", "a");
    child.metadata.owner_references = Some(serde_json::from_value(json!([{
        "apiVersion": format!("{group}/v1"), "kind": "Widget", "name": "w",
        "uid": "00000000-0000-4000-8000-000000000000", "blockOwnerDeletion": true,
    }]))?);
    env.install_crds(&[widget_definition(&group)]).await?;
    maps.create(&PostParams::default(), &child).await?;
    Ok(())
}

#[tokio::test]
async fn a_user_has_exactly_the_rights_given_to_it() -> Result<()> {
    let env = or_not_run!(TestEnv::portable().await);
    let namespace = env.namespace("rights").await?;
    let rules = Rules::default().in_namespace(rule("", &["configmaps"], &["create", "get"]));
    let user = namespace.client_for("reader", &rules).await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client()?, namespace.name());
    maps.create(&PostParams::default(), &config_map("m", "a")).await?;
    maps.get("m").await?;
    let error = maps.delete("m", &kube::api::DeleteParams::default()).await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!(status.code, 403, "{}", status.message);
    assert!(status.message.contains(user.name()), "{}", status.message);
    Ok(())
}

#[tokio::test]
async fn an_owner_reference_that_blocks_needs_the_right_to_finalize() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("finalize").await?;
    let owner =
        namespace.api::<ConfigMap>().create(&PostParams::default(), &config_map("owner", "a")).await?;
    let mut child = config_map("child", "a");
    child.metadata.owner_references = Some(vec![serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "blockOwnerDeletion": true,
    }))?]);
    let rules = Rules::default().in_namespace(rule("", &["configmaps"], &["create", "get"]));
    let user = namespace.client_for("plain", &rules).await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client()?, namespace.name());
    let error = maps.create(&PostParams::default(), &child).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 403), "{error}");

    let rules = rules.in_namespace(rule("", &["configmaps/finalizers"], &["update"]));
    let user = namespace.client_for("finalizer", &rules).await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client()?, namespace.name());
    maps.create(&PostParams::default(), &child).await?;
    Ok(())
}

/// Run twice at the same time, to see that neither counts the other's requests.
async fn count_what_was_done(hint: &str, creates: usize) -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace(hint).await?;
    let user = namespace.client_for("counted", &Rules::everything()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client()?, namespace.name());
    let log = env.requests()?;

    let start = log.mark()?;
    for index in 0..creates {
        maps.create(&PostParams::default(), &config_map(&format!("m{index}"), "a")).await?;
    }
    let middle = log.mark()?;
    maps.get("m0").await?;
    assert!(maps.get_opt("absent").await?.is_none());
    maps.list(&ListParams::default()).await?;

    let first = log.between(start, middle)?.by_user(user.name());
    assert_eq!(first.count(), creates, "{first}");
    assert_eq!(first.verb("create").resource("configmaps").code(201).count(), creates, "{first}");
    let second = log.since(middle)?.by_user(user.name());
    assert!(second.writes().is_empty(), "{second}");
    assert_eq!(second.verb("get").code(200).count(), 1, "{second}");
    assert_eq!(second.verb("get").code(404).count(), 1, "{second}");
    assert_eq!(second.verb("list").by_agent("windlass-testenv-user").count(), 1, "{second}");
    assert_eq!(second.count(), 3, "{second}");
    Ok(())
}

#[tokio::test]
async fn requests_are_counted_exactly() -> Result<()> {
    count_what_was_done("count-a", 20).await
}

#[tokio::test]
async fn requests_are_counted_exactly_beside_another_test() -> Result<()> {
    let (a, b) = tokio::join!(count_what_was_done("count-b", 30), count_what_was_done("count-c", 40));
    a.and(b)
}

#[tokio::test]
async fn an_open_watch_counts_once() -> Result<()> {
    use futures::{StreamExt as _, TryStreamExt as _};
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("watch").await?;
    let user = namespace.client_for("watcher", &Rules::everything()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client()?, namespace.name());
    let log = env.requests()?;
    let mark = log.mark()?;
    let mut watch = maps.watch(&kube::api::WatchParams::default(), "0").await?.boxed();
    maps.create(&PostParams::default(), &config_map("m", "a")).await?;
    watch.try_next().await?.context("an event")?;
    let open = log.since(mark)?.by_user(user.name()).verb("watch");
    assert_eq!(open.count(), 1, "{open}");
    drop(watch);
    // The end of the connection is logged some time later; it must not count again.
    maps.get("m").await?;
    assert_eq!(log.since(mark)?.by_user(user.name()).verb("watch").count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_dropped_namespace_is_deleted_in_the_background() -> Result<()> {
    use k8s_openapi::api::core::v1::Namespace;
    let env = or_not_run!(TestEnv::portable().await);
    let namespace = env.namespace("dropped").await?;
    let name = namespace.name().to_owned();
    drop(namespace);
    let namespaces: Api<Namespace> = Api::all(env.client());
    eventually("the namespace to be deleted", || async {
        match namespaces.get_opt(&name).await.map_err(|e| e.to_string())? {
            None => Ok(()),
            Some(live) if live.metadata.deletion_timestamp.is_some() => Ok(()),
            Some(_) => Err("it is there".to_owned()),
        }
    })
    .await?;
    Ok(())
}
