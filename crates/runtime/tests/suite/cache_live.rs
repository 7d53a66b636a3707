//! Tests of the cache on the real control plane, with a fault proxy.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::live;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use live::{Configs, Live, config_map, quick, synced, until, value_of};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use windlass_runtime::cache::{Cache, Cause, MetadataOnly, OfKind, Origin, Shape, SyncState, WatchTiming};
use windlass_runtime::client::{Apply, Client, ClientOptions, Delete};
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;
use windlass_testenv::proxy::{Answer, Fault, WatchFault};
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

#[tokio::test]
async fn readers_of_any_shape_share_one_watch_which_ends_with_the_last() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "shared-watch").await?;
    live.put("a", "1").await?;
    let before = env.requests()?.mark()?;
    let cache = Cache::with_timing(&live.client, quick());
    let whole: Configs = cache.reader(&live.here());
    let slim = cache.reader::<MetadataOnly<ConfigMap>>(&live.here());
    let again: Configs = cache.reader(&live.here());
    cache.start();
    whole.synced().await;
    slim.synced().await;
    live.put("b", "2").await?;
    until(&whole, "the change in one shape", |reader| reader.get(&live.key("b")).is_some()).await?;
    until(&slim, "the change in the other", |reader| reader.get(&live.key("b")).is_some()).await?;
    assert_eq!(live.proxy.open_watches(&live.watches()), 1);

    drop((whole, slim));
    live.put("c", "3").await?;
    until(&again, "changes as long as anyone reads", |reader| reader.get(&live.key("c")).is_some()).await?;
    drop(again);
    live.proxy.wait_for_open_watches(&live.watches(), 0).await?;
    let requests = env.requests()?.since(before)?;
    let ours = requests.by_user(live.user.name()).resource("configmaps").by_agent("windlass/");
    assert_eq!((ours.verb("watch").count(), ours.verb("list").count()), (1, 0), "{ours}");
    Ok(())
}

/// A kind that the server does not know at first.
#[derive(Deserialize)]
struct Gadget {
    metadata: Meta,
}

impl Shape for Gadget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for Gadget {
    fn resource() -> ResourceType {
        ResourceType {
            group: "gadgets.windlass.dev".into(),
            version: "v1".into(),
            kind: "Gadget".into(),
            plural: "gadgets".into(),
            namespaced: true,
        }
    }
}

#[tokio::test]
async fn d10_a_kind_without_its_crd_blocks_only_its_readers_until_it_is_installed() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "missing-crd").await?;
    let mut resource = Gadget::resource();
    // The control plane is shared with other tests, so the group is unique.
    resource.group = format!("{}.windlass.dev", live.namespace.name()).into();
    let cache = Cache::with_timing(&live.client, quick());
    let gadgets = cache.reader_of::<Gadget>(&resource, &live.here());
    let configs: Configs = cache.reader(&live.here());
    cache.start();
    configs.synced().await;
    let blocked = gadgets.state().wait_for(|state| matches!(state, SyncState::Blocked(_))).await?.clone();
    let SyncState::Blocked(problem) = blocked else { panic!("{blocked:?}") };
    assert_eq!(problem.cause, Cause::Missing);
    assert!(problem.to_string().contains(&resource.group_resource()), "{problem}");

    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.group_resource()},
        "spec": {
            "group": resource.group, "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))?;
    env.install_crds(&[crd]).await?;
    gadgets.synced().await;
    let gadget = json!({"apiVersion": resource.api_version(), "kind": "Gadget", "metadata": {"name": "g"}});
    let objects = live.client.objects_of::<Gadget>(resource);
    objects.apply(&live.key("g"), &gadget, &Apply::by("test")).await?;
    assert_eq!(gadgets.len(), 1, "in the next line");
    Ok(())
}

#[tokio::test]
async fn missing_rights_block_until_they_are_granted_and_again_when_they_are_revoked() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "rights").await?;
    let user = live.namespace.client_for("limited", &Rules::default()).await?;
    let client = Client::new(user.config_through(&live.proxy.url())?, ClientOptions::default())?;
    let cache = Cache::with_timing(&client, quick());
    let configs: Configs = cache.reader(&live.here());
    cache.start();
    let state = configs.state();
    let blocked = state.clone().wait_for(|state| matches!(state, SyncState::Blocked(_))).await?.clone();
    let SyncState::Blocked(problem) = blocked else { panic!("{blocked:?}") };
    let Cause::Forbidden(missing) = &problem.cause else { panic!("{problem:?}") };

    // Grants exactly the rule that the problem names.
    assert_eq!(missing.namespace.as_deref(), Some(live.namespace.name()));
    let metadata = json!({"name": "limited", "namespace": live.namespace.name()});
    let role: Role = serde_json::from_value(json!({
        "metadata": metadata,
        "rules": [{"apiGroups": [missing.api_group], "resources": [missing.resource], "verbs": missing.verbs}],
    }))?;
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"},
        "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": live.namespace.name()}],
    }))?;
    live.namespace.api::<Role>().create(&PostParams::default(), &role).await?;
    live.namespace.api::<RoleBinding>().create(&PostParams::default(), &binding).await?;
    configs.synced().await;

    // An open watch stays open; the next one is refused.
    live.namespace.api::<RoleBinding>().delete("limited", &DeleteParams::default()).await?;
    eventually("the next watch to be refused", || async {
        live.proxy.cut_watches(&live.watches());
        let state = state.borrow().clone();
        if matches!(state, SyncState::Blocked(_)) { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await?;
    live.put("meanwhile", "1").await?;
    live.namespace.api::<RoleBinding>().create(&PostParams::default(), &binding).await?;
    configs.synced().await;
    until(&configs, "what happened meanwhile", |reader| reader.get(&live.key("meanwhile")).is_some()).await
}

#[tokio::test]
async fn a_cut_connection_is_resumed_without_a_list_and_without_a_gap() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "cut").await?;
    for name in ["a", "b"] {
        live.put(name, "1").await?;
    }
    let (cache, configs) = synced(&live, quick()).await;
    // The new watch is held until everything has happened.
    let held = live.proxy.add(Fault::on(live.watches()).first().then(windlass_testenv::proxy::Action::Hold));
    assert_eq!(live.proxy.cut_watches(&live.watches()), 1);
    held.wait_for_hits(1).await?;
    live.remove("a").await?;
    live.put("b", "2").await?;
    live.put("c", "1").await?;
    held.release();
    until(&configs, "the gap closed", |reader| value_of(reader, &live.key("c")).is_some()).await?;
    assert_eq!(live.equals_server(&configs).await?, 2 + kube_root_ca(&configs));
    assert_eq!(cache.watches()[0].lists, 1, "resumed, not listed again");
    Ok(())
}

/// The number of ConfigMaps that Kubernetes itself puts into a namespace.
fn kube_root_ca(configs: &Configs) -> usize {
    configs.list().iter().filter(|config| config.meta().name() == "kube-root-ca.crt").count()
}

#[tokio::test]
async fn a_half_open_connection_is_detected_and_nothing_is_missed() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "half-open").await?;
    let (_cache, configs) = synced(&live, WatchTiming { idle: Duration::from_secs(1), ..quick() }).await;
    assert_eq!(live.proxy.half_open(&live.watches()), 1);
    live.put("a", "1").await?;
    until(&configs, "what the dead connection did not bring", |reader| reader.get(&live.key("a")).is_some())
        .await
}

#[tokio::test]
async fn deletes_during_a_disconnect_are_reported_after_the_resource_version_expired() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "deletes").await?;
    for name in ["a", "b", "c"] {
        live.put(name, "1").await?;
    }
    let (cache, configs) = synced(&live, quick()).await;
    let changes = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&changes);
    let _subscription = configs.subscribe(move |change| {
        if change.new.is_none() {
            let name = change.old.as_ref().unwrap().meta().name().to_owned();
            log.lock().unwrap().push((name, change.origin));
        }
    });
    let held = live.proxy.add(Fault::on(live.watches()).first().then(windlass_testenv::proxy::Action::Hold));
    live.proxy.cut_watches(&live.watches());
    held.wait_for_hits(1).await?;
    live.proxy.add(Fault::on(live.watches()).first().then(WatchFault::Error(Answer::expired())));
    live.remove("a").await?;
    live.remove("c").await?;
    held.discard();
    until(&configs, "the deletes", |_| changes.lock().unwrap().len() == 2).await?;
    let changes = changes.lock().unwrap().clone();
    assert_eq!(changes, [("a".to_owned(), Origin::Relist), ("c".to_owned(), Origin::Relist)]);
    assert_eq!(cache.watches()[0].lists, 2);
    Ok(())
}

#[tokio::test]
async fn metadata_of_secrets_is_watched_without_their_content() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "secrets").await?;
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": value}});
    let apply = Apply::by("test").force();
    live.direct.objects::<Secret>().apply(&live.key("s"), &secret("one"), &apply).await?;
    let cache = Cache::with_timing(&live.client, quick());
    let secrets = cache.reader::<MetadataOnly<Secret>>(&live.here());
    cache.start();
    secrets.synced().await;
    let first = secrets.get(&live.key("s")).unwrap().resource_version.clone();
    live.direct.objects::<Secret>().apply(&live.key("s"), &secret("two"), &apply).await?;
    until(&secrets, "a newer version", |reader| {
        reader.get(&live.key("s")).is_some_and(|secret| secret.resource_version > first)
    })
    .await
}

#[tokio::test]
async fn five_thousand_objects_are_listed_alike_by_stream_unpaged_and_by_pages() -> Result<()> {
    const OBJECTS: usize = 5_000;
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "many").await?;
    let made = futures::stream::iter(0..OBJECTS).map(|at| {
        let live = &live;
        async move { live.put(&format!("object-{at:05}"), "1").await }
    });
    let made: Vec<Result<()>> = made.buffer_unordered(16).collect().await;
    made.into_iter().collect::<Result<()>>()?;

    let (streaming, streamed) = synced(&live, WatchTiming { streamed: OBJECTS + 10, ..quick() }).await;
    assert_eq!(streamed.len(), OBJECTS + kube_root_ca(&streamed));
    assert_eq!(streaming.watches()[0].restarts, 0, "one request");
    drop((streaming, streamed));

    let (listing, listed) = synced(&live, quick()).await;
    assert_eq!(listed.len(), OBJECTS + kube_root_ca(&listed));
    follows(&live, &listed, "object-00001").await?;
    assert_eq!(listing.watches()[0].restarts, 2, "a stream that was given up, a list, a watch");
    drop((listing, listed));

    let (at_once, listed) = synced(&live, WatchTiming::default()).await;
    follows(&live, &listed, "object-00002").await?;
    assert_eq!(at_once.watches()[0].restarts, 1, "a list, a watch");
    drop((at_once, listed));

    let no_streaming = Answer::new(422, "Invalid", "sendInitialEvents is forbidden");
    live.proxy.add(Fault::on(live.watches()).first().then(no_streaming));
    let (_paging, paged) = synced(&live, quick()).await;
    assert_eq!(paged.len(), OBJECTS + kube_root_ca(&paged));
    follows(&live, &paged, "object-00000").await
}

/// Waits until a change after the list is in the cache, and the cache equals the server.
async fn follows(live: &Live, configs: &Configs, name: &str) -> Result<()> {
    live.put(name, "2").await?;
    until(configs, "a change after the list", |reader| {
        value_of(reader, &live.key(name)).as_deref() == Some("2")
    })
    .await?;
    live.equals_server(configs).await?;
    Ok(())
}

/// Creates, updates and deletes through the client while the watch lags, and reads the cache right after each
/// write.
async fn write_and_read(
    live: &Live,
    configs: &Configs,
    task: usize,
    rounds: usize,
    writes: &watch::Sender<usize>,
) -> Result<()> {
    let objects = live.client.objects::<ConfigMap>();
    let apply = Apply::by("writer").force();
    for round in 0..rounds {
        let name = format!("task-{task}-{}", round % 3);
        let key = live.key(&name);
        for value in ["created", "updated"] {
            let value = format!("{value} {round}");
            let answer = objects.apply(&key, &config_map(&name, &value), &apply).await?;
            let read = configs.list().into_iter().find(|config| config.meta().key == key);
            let read = read.map(|config| config.object().clone());
            ensure!(
                read.as_ref().and_then(|read| read.data.clone()) == answer.data,
                "stale after a write: {read:?}"
            );
            writes.send_modify(|writes| *writes += 1);
        }
        objects.delete(&key, &Delete::any()).await?;
        ensure!(!configs.list().iter().any(|config| config.meta().key == key), "stale after a delete: {key}");
        writes.send_modify(|writes| *writes += 1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_writes_are_read_back_at_once_however_late_the_watch() -> Result<()> {
    const TASKS: usize = 8;
    const ROUNDS: usize = 417;
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "own-writes").await?;
    let (_cache, configs) = synced(&live, quick()).await;
    let writes = watch::Sender::new(0);
    let tasks = (0..TASKS).map(|task| write_and_read(&live, &configs, task, ROUNDS, &writes));
    let writing = futures::future::try_join_all(tasks);
    // The watch is stopped most of the time, sometimes catches up, and breaks.
    let lagging = async {
        let mut seen = writes.subscribe();
        let mut after = 0;
        loop {
            let frozen = live.proxy.freeze_watches(&live.watches());
            after += 200;
            let _ = seen.wait_for(|writes| *writes >= after).await;
            frozen.release();
            after += 50;
            let _ = seen.wait_for(|writes| *writes >= after).await;
            live.proxy.cut_watches(&live.watches());
        }
    };
    tokio::select! {
        written = writing => { written?; }
        () = lagging => {}
    }
    assert_eq!(*writes.borrow(), TASKS * ROUNDS * 3);
    live.put("last", "1").await?;
    until(&configs, "the watch to catch up", |reader| reader.get(&live.key("last")).is_some()).await?;
    live.equals_server(&configs).await?;
    Ok(())
}
