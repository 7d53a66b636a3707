//! Tests of the informer against a scripted server, on a paused clock.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::fake_api;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake_api::{FakeApi, config_map, fake_api, streaming, uid_text};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde_json::json;
use windlass_runtime::cache::{
    Cache, Cause, Full, MetadataOnly, OfKind, Origin, Reader, Selection, Shape, Subscription, SyncState,
    WatchTiming,
};
use windlass_runtime::client::{Apply, Client, Delete, Deletion};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Keep, Meta};
use windlass_runtime::resource::ResourceType;
use windlass_testenv::within;

type Slim = MetadataOnly<ConfigMap>;
type Whole = Full<ConfigMap>;

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("n", name)
}

/// Changes as a subscriber received them: name, versions of old and new, origin.
type Heard = Arc<Mutex<Vec<(String, String, String, Origin)>>>;

fn listen<S: Shape>(reader: &Reader<S>) -> (Subscription, Heard) {
    let heard = Heard::default();
    let log = Arc::clone(&heard);
    let subscription = reader.subscribe(move |change| {
        let version = |object: &Option<Arc<S>>| {
            object.as_ref().map(|object| object.meta().resource_version.to_string()).unwrap_or_default()
        };
        let name = change.object().unwrap().meta().name().to_owned();
        log.lock().unwrap().push((name, version(&change.old), version(&change.new), change.origin));
    });
    (subscription, heard)
}

fn heard(heard: &Heard) -> Vec<(String, String, String, Origin)> {
    std::mem::take(&mut *heard.lock().unwrap())
}

fn change(name: &str, old: &str, new: &str, origin: Origin) -> (String, String, String, Origin) {
    (name.to_owned(), old.to_owned(), new.to_owned(), origin)
}

/// Waits for a condition that events in flight will cause.
async fn eventually(condition: impl Fn() -> bool) {
    // The clock is paused: an hour takes no time.
    let seen = || std::future::ready(if condition() { Ok(()) } else { Err("not yet".to_owned()) });
    within(Duration::from_hours(1), "the news", seen).await.unwrap();
}

fn version_of<S: Shape>(reader: &Reader<S>, name: &str) -> Option<String> {
    reader.get(&key(name)).map(|object| object.meta().resource_version.to_string())
}

fn started() -> (Client, FakeApi, Cache, Reader<Slim>) {
    let (client, api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let reader = cache.reader::<Slim>(&Selection::all());
    cache.start();
    (client, api, cache, reader)
}

#[tokio::test(start_paused = true)]
async fn a_list_is_streamed_and_the_same_stream_goes_on_as_the_watch() {
    let (_client, mut api, _cache, reader) = started();
    let (_subscription, changes) = listen(&reader);
    let mut stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    reader.synced().await;
    assert_eq!(heard(&changes), [change("a", "", "8", Origin::InitialList)]);

    stream.event("ADDED", &config_map("b", 2, 11)).await;
    stream.event("MODIFIED", &config_map("a", 1, 12)).await;
    stream.event("DELETED", &config_map("b", 2, 13)).await;
    eventually(|| changes.lock().unwrap().len() == 3).await;
    assert_eq!(
        heard(&changes),
        [
            change("b", "", "11", Origin::Watch),
            change("a", "8", "12", Origin::Watch),
            change("b", "11", "", Origin::Watch)
        ]
    );
    assert!(api.is_quiet(), "one request does it all");
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_not_synced_before_its_list_has_ended() {
    let (_client, mut api, _cache, reader) = started();
    let mut stream = api.next().await.stream();
    stream.event("ADDED", &config_map("a", 1, 8)).await;
    eventually(|| reader.len() == 1).await;
    assert_eq!(*reader.state().borrow(), SyncState::Starting);
    stream.end_of_list(10).await;
    reader.synced().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_ends_a_streaming_list_is_listed_by_pages_from_then_on() {
    let (_client, mut api, cache, reader) = started();
    let _silent = api.next().await.stream();
    let first = api.next().await;
    assert_eq!(first.target, "/api/v1/configmaps?limit=500");
    first.answer(
        200,
        &json!({"metadata": {"resourceVersion": "10", "continue": "more"}, "items": [config_map("a", 1, 8)]}),
    );
    let second = api.next().await;
    assert_eq!(second.target, "/api/v1/configmaps?limit=500&continue=more");
    assert!(!reader.state().borrow().is_synced());
    second.answer(200, &json!({"metadata": {"resourceVersion": "10"}, "items": [config_map("b", 2, 9)]}));
    let stream = api.watch_from(10).await;
    reader.synced().await;
    assert_eq!(reader.len(), 2);

    stream.close();
    api.next().await.refuse(410, "Expired", "too old");
    assert!(api.next().await.target.contains("limit=500"), "remembered by this watch");
    let _other = cache.reader::<Slim>(&Selection::all().in_namespace("n"));
    assert!(api.next().await.target.contains("/namespaces/n/configmaps?limit=500"), "and for the kind");
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_selector_is_listed_unpaged_and_one_with_a_selector_is_streamed() {
    let (client, mut api) = fake_api();
    let cache = Cache::new(&client);
    let reader = cache.reader::<Slim>(&Selection::all().in_namespace("n"));
    cache.start();
    let asked = api.next().await;
    assert_eq!(asked.target, "/api/v1/namespaces/n/configmaps?limit=0");
    asked.answer(200, &json!({"metadata": {"resourceVersion": "10"}, "items": [config_map("a", 1, 8)]}));
    let _whole = api.watch_from(10).await;
    reader.synced().await;
    assert_eq!(reader.len(), 1);

    for selection in [Selection::all().labels("app=web"), Selection::all().fields("metadata.name=a")] {
        let some = cache.reader::<Slim>(&selection.unwrap());
        let _stream = api.stream_list(11, &[]).await;
        some.synced().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_unpaged_list_is_decoded_incrementally_and_reported_once() {
    let (client, mut api) = fake_api();
    let timing = WatchTiming { streamed: 2, ..streaming() };
    let cache = Cache::with_timing(&client, timing);
    let reader = cache.reader::<Slim>(&Selection::all());
    cache.start();
    let (_subscription, changes) = listen(&reader);
    let mut stream = api.next().await.stream();
    for at in 0..3 {
        stream.event("ADDED", &config_map(&format!("a{at}"), at, 8)).await;
    }
    let asked = api.next().await;
    assert_eq!(asked.target, "/api/v1/configmaps?limit=0");
    stream.closed().await;
    let mut list = asked.stream();
    list.line(r#"{"apiVersion":"v1","items":["#).await;
    for at in 0..4 {
        let comma = if at == 0 { "" } else { "," };
        list.line(&format!("{comma}{}", config_map(&format!("a{at}"), at, 8))).await;
    }
    eventually(|| reader.len() == 4).await;
    assert!(!reader.state().borrow().is_synced(), "it has not ended");
    list.line(r#"],"kind":"ConfigMapList","metadata":{"resourceVersion":"10"}}"#).await;
    list.close();
    let stream = api.watch_from(10).await;
    reader.synced().await;
    let expected: Vec<_> = (0..4).map(|at| change(&format!("a{at}"), "", "8", Origin::InitialList)).collect();
    assert_eq!(heard(&changes), expected);

    // Once the kind is known to be large, no stream is started.
    stream.close();
    api.next().await.refuse(410, "Expired", "too old");
    assert_eq!(api.next().await.target, "/api/v1/configmaps?limit=0");
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_list_is_discarded() {
    let (_client, mut api, _cache, reader) = started();
    api.next().await.refuse(422, "Invalid", "sendInitialEvents is forbidden");
    let mut list = api.next().await.stream();
    list.line(r#"{"metadata":{"resourceVersion":"10"},"items":["#).await;
    list.line(&config_map("a", 1, 8).to_string()).await;
    list.close();
    let again = api.next().await;
    assert!(!reader.state().borrow().is_synced());
    again.answer(200, &json!({"metadata": {"resourceVersion": "10"}, "items": [config_map("a", 1, 8)]}));
    let _stream = api.watch_from(10).await;
    reader.synced().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_by_pages() {
    let (_client, mut api, _cache, reader) = started();
    api.next().await.refuse(422, "Invalid", "sendInitialEvents is forbidden");
    api.next().await.answer(200, &json!({"metadata": {"resourceVersion": "10"}, "items": null}));
    let _stream = api.watch_from(10).await;
    reader.synced().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_is_resumed_at_its_resource_version() {
    let (_client, mut api, _cache, reader) = started();
    let mut stream = api.stream_list(10, &[]).await;
    stream.event("ADDED", &config_map("a", 1, 12)).await;
    stream.bookmark(17).await;
    stream.close();
    let stream = api.watch_from(17).await;
    assert_eq!(version_of(&reader, "a").unwrap(), "12");
    stream.cut().await;
    let _stream = api.watch_from(17).await;
    assert!(reader.state().borrow().is_synced(), "a hiccup is not a problem");
}

#[tokio::test(start_paused = true)]
async fn deletions_before_an_expired_resource_version_are_reported_for_every_form_of_expiry() {
    for as_event in [true, false] {
        let (_client, mut api, _cache, reader) = started();
        let mut stream = api.stream_list(10, &[config_map("a", 1, 8), config_map("b", 2, 9)]).await;
        reader.synced().await;
        let (_subscription, changes) = listen(&reader);
        heard(&changes);
        if as_event {
            stream.event("ERROR", &json!({"kind": "Status", "code": 410, "reason": "Expired"})).await;
        } else {
            stream.close();
            api.next().await.refuse(410, "Expired", "too old");
        }
        let _stream = api.stream_list(20, &[config_map("b", 2, 9), config_map("c", 3, 15)]).await;
        eventually(|| changes.lock().unwrap().len() == 2).await;
        assert_eq!(
            heard(&changes),
            [change("c", "", "15", Origin::Relist), change("a", "8", "", Origin::Relist)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_silently_dead_connection_is_detected() {
    let (_client, mut api, _cache, reader) = started();
    let stream = api.stream_list(10, &[]).await;
    reader.synced().await;
    // Nothing arrives any more, and the connection is not closed.
    let second = api.watch_from(10).await;
    stream.closed().await;
    // Silent again: the server may not know this resource version. A list finds out.
    let third = api.stream_list(12, &[config_map("a", 1, 11)]).await;
    second.closed().await;
    eventually(|| reader.len() == 1).await;
    drop(third);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_bookmarks_is_not_suspected_for_being_quiet() {
    let (_client, mut api, _cache, reader) = started();
    api.next().await.refuse(422, "Invalid", "sendInitialEvents is forbidden");
    api.next().await.answer(200, &json!({"metadata": {"resourceVersion": "10"}, "items": []}));
    let mut stream = api.watch_from(10).await;
    reader.synced().await;
    let asked = tokio::time::timeout(Duration::from_mins(4), api.next()).await;
    assert!(asked.is_err(), "it asks for nothing in four minutes");
    stream.bookmark(12).await;
    // From now on bookmarks are expected, and silence means a dead connection.
    let _second = api.watch_from(12).await;
    stream.closed().await;
}

#[tokio::test(start_paused = true)]
async fn d10_a_missing_kind_blocks_only_its_readers_is_reported_and_recovers() {
    let (_client, mut api, _cache, reader) = started();
    api.next().await.refuse(404, "NotFound", "the server could not find the requested resource");
    let mut state = reader.state();
    let blocked = state.wait_for(|state| matches!(state, SyncState::Blocked(_))).await.unwrap().clone();
    let SyncState::Blocked(problem) = blocked else { panic!() };
    assert_eq!(problem.cause, Cause::Missing);
    assert!(problem.to_string().contains("install the CRD configmaps"), "{problem}");
    api.next().await.refuse(404, "NotFound", "still");
    let _stream = api.stream_list(10, &[]).await;
    reader.synced().await;
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_kind_names_the_missing_rule_and_recovers() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let reader = cache.reader::<Slim>(&Selection::all().in_namespace("shop"));
    cache.start();
    api.next().await.refuse(403, "Forbidden", "configmaps is forbidden");
    let mut state = reader.state();
    let blocked = state.wait_for(|state| matches!(state, SyncState::Blocked(_))).await.unwrap().clone();
    let SyncState::Blocked(problem) = blocked else { panic!() };
    assert_eq!(
        problem.to_string(),
        "ConfigMap (v1) may not be read: grant {apiGroups: [\"\"], resources: [\"configmaps\"], \
         verbs: [\"list\", \"watch\"]} in a Role of namespace shop"
    );
    let _stream = api.stream_list(10, &[]).await;
    reader.synced().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_reported_after_a_while_until_it_is_back() {
    let (_client, mut api, cache, reader) = started();
    let stream = api.stream_list(10, &[]).await;
    reader.synced().await;
    stream.cut().await;
    for _ in 0..3 {
        api.next().await.cut();
    }
    let mut state = reader.state();
    state.wait_for(|state| matches!(state, SyncState::Blocked(_))).await.unwrap();
    let _stream = api.watch_from(10).await;
    reader.synced().await;
    assert!(cache.watches()[0].restarts >= 4);
}

#[derive(Deserialize)]
struct Rich {
    metadata: Meta,
    data: std::collections::BTreeMap<String, String>,
}

impl Shape for Rich {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for Rich {
    fn resource() -> ResourceType {
        ResourceType::of::<ConfigMap>()
    }
}

#[tokio::test(start_paused = true)]
async fn d11_readers_with_different_shapes_of_a_kind_share_one_watch() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let slim = cache.reader::<Slim>(&Selection::all());
    let rich = cache.reader::<Rich>(&Selection::all());
    let whole = cache.reader::<Whole>(&Selection::all());
    let marked = cache.reader::<Slim>(&Selection::all().keep(Keep::default().manager("m")));
    cache.start();
    let _stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    slim.synced().await;
    marked.synced().await;
    assert_eq!(version_of(&slim, "a").unwrap(), "8");
    assert_eq!(rich.get(&key("a")).unwrap().data["version"], "8");
    assert_eq!(whole.get(&key("a")).unwrap().data.as_ref().unwrap()["version"], "8");
    assert!(api.is_quiet());
    assert_eq!((cache.watches().len(), cache.watches()[0].shapes), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn only_metadata_is_requested_until_a_reader_needs_more() {
    let (_client, mut api, cache, slim) = started();
    let asked = api.next().await;
    assert_eq!(asked.accept, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let mut stream = asked.stream();
    stream.end_of_list(10).await;
    slim.synced().await;

    let rich = cache.reader::<Rich>(&Selection::all());
    let asked = api.next().await;
    assert_eq!(asked.accept, "application/json");
    stream.closed().await;
    assert!(slim.state().borrow().is_synced(), "those who were synced stay so");
    let mut stream = asked.stream();
    stream.event("ADDED", &config_map("a", 1, 8)).await;
    stream.end_of_list(10).await;
    rich.synced().await;
    assert_eq!((slim.len(), rich.len()), (1, 1));

    drop(rich);
    stream.close();
    let asked = api.next().await;
    assert!(asked.accept.contains("PartialObjectMetadata"), "nobody wants more any longer");
}

#[tokio::test(start_paused = true)]
async fn d13_the_watch_ends_with_its_last_reader_and_not_before() {
    let (_client, mut api, cache, reader) = started();
    let stream = api.stream_list(10, &[]).await;
    reader.synced().await;
    let other = cache.reader::<Slim>(&Selection::all());
    let (subscription, _changes) = listen(&other);
    drop((reader, other));
    tokio::task::yield_now().await;
    assert_eq!(cache.watches().len(), 1, "a subscription keeps it going");
    drop(subscription);
    stream.closed().await;
    assert!(cache.watches().is_empty());

    let again = cache.reader::<Slim>(&Selection::all());
    let _stream = api.stream_list(20, &[]).await;
    again.synced().await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_keeps_its_last_form_and_blocks_nothing() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let rich = cache.reader::<Rich>(&Selection::all());
    cache.start();
    let mut stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    rich.synced().await;
    let mut broken = config_map("a", 1, 11);
    broken["data"] = json!(7);
    stream.event("MODIFIED", &broken).await;
    stream.event("ADDED", &config_map("b", 2, 12)).await;
    eventually(|| rich.len() == 2).await;
    assert_eq!(version_of(&rich, "a").unwrap(), "8");
    assert_eq!(cache.watches()[0].undecodable, 1);
    stream.close();
    api.next().await.refuse(410, "Expired", "too old");
    let _stream = api.stream_list(20, &[broken, config_map("b", 2, 12)]).await;
    eventually(|| cache.watches()[0].lists == 2).await;
    assert_eq!(version_of(&rich, "a").unwrap(), "8", "nor does a list take it away");
}

#[tokio::test(start_paused = true)]
async fn a_late_subscriber_first_receives_all_cached_objects() {
    let (_client, mut api, _cache, reader) = started();
    let mut stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    reader.synced().await;
    let (_subscription, changes) = listen(&reader);
    assert_eq!(heard(&changes), [change("a", "", "8", Origin::InitialList)]);
    stream.event("MODIFIED", &config_map("a", 1, 11)).await;
    eventually(|| changes.lock().unwrap().len() == 1).await;
    assert_eq!(heard(&changes), [change("a", "8", "11", Origin::Watch)]);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_subscriber_affects_neither_the_watch_nor_the_others() {
    let (_client, mut api, _cache, reader) = started();
    let _panicking = reader.subscribe(|_| panic!("on purpose"));
    let (_subscription, changes) = listen(&reader);
    let _stream = api.stream_list(10, &[config_map("a", 1, 8), config_map("b", 2, 9)]).await;
    reader.synced().await;
    assert_eq!(heard(&changes).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_use_several_watches_and_have_the_worst_state_of_them() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let reader = cache.reader::<Slim>(&Selection::all().in_namespaces(["n", "m"]));
    let shared = cache.reader::<Slim>(&Selection::all().in_namespace("n"));
    cache.start();
    let (mut first, mut second) = (api.next().await, api.next().await);
    if first.target.contains("/namespaces/m/") {
        std::mem::swap(&mut first, &mut second);
    }
    assert!(first.target.contains("/namespaces/n/") && second.target.contains("/namespaces/m/"));
    let mut n = first.stream();
    n.event("ADDED", &config_map("a", 1, 8)).await;
    n.end_of_list(10).await;
    shared.synced().await;
    assert_eq!(*reader.state().borrow(), SyncState::Starting);
    second.refuse(403, "Forbidden", "no");
    reader.state().wait_for(|state| matches!(state, SyncState::Blocked(_))).await.unwrap();
    assert!(shared.state().borrow().is_synced(), "the other namespace is not held up");
    let _m = api.stream_list(10, &[]).await;
    reader.synced().await;
    assert_eq!((reader.list().len(), reader.list_in("m").len()), (1, 0));
    assert!(api.is_quiet(), "namespace n is watched once for both");
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_from_a_backup_is_followed_again() {
    let (_client, mut api, _cache, reader) = started();
    let stream = api.stream_list(100, &[config_map("a", 1, 90), config_map("b", 2, 95)]).await;
    reader.synced().await;
    stream.close();
    api.next().await.refuse(410, "Expired", "too old");
    let _old = api.stream_list(50, &[config_map("a", 1, 40)]).await;
    let _new = api.stream_list(50, &[config_map("a", 1, 40)]).await;
    eventually(|| reader.len() == 1).await;
    assert_eq!(version_of(&reader, "a").unwrap(), "40");
}

// ---- Writes
// ---------------------------------------------------------------------------------------------------------

/// Answers the next request, which is sent by a task of its own.
async fn answered<T: Send + 'static>(
    api: &mut FakeApi,
    call: impl Future<Output = T> + Send + 'static,
    answer: impl FnOnce(fake_api::Asked),
) -> T {
    let call = tokio::spawn(call);
    answer(api.next().await);
    call.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_write_response_is_in_the_cache_before_the_call_returns_and_is_reported_once() {
    let (client, mut api, _cache, reader) = started();
    let mut stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    reader.synced().await;
    let (_subscription, changes) = listen(&reader);
    heard(&changes);

    let configs = client.objects::<ConfigMap>();
    let apply = async move { configs.apply(&key("a"), &json!({}), &Apply::by("me").force()).await };
    answered(&mut api, apply, |asked| {
        assert_eq!(asked.target, "/api/v1/namespaces/n/configmaps/a?fieldManager=me&force=true");
        asked.answer(200, &config_map("a", 1, 12));
    })
    .await
    .unwrap();
    assert_eq!(version_of(&reader, "a").unwrap(), "12", "in the next line");
    assert_eq!(heard(&changes), [change("a", "8", "12", Origin::Write)]);

    stream.event("MODIFIED", &config_map("a", 1, 11)).await;
    stream.event("MODIFIED", &config_map("a", 1, 12)).await;
    stream.event("MODIFIED", &config_map("a", 1, 13)).await;
    eventually(|| !changes.lock().unwrap().is_empty()).await;
    assert_eq!(heard(&changes), [change("a", "12", "13", Origin::Watch)]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_removed_from_the_cache_before_the_call_returns() {
    let (client, mut api, _cache, reader) = started();
    let mut stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    reader.synced().await;
    let (_subscription, changes) = listen(&reader);
    heard(&changes);

    let configs = client.objects::<ConfigMap>();
    let delete = async move { configs.delete(&key("a"), &Delete::any()).await };
    let deletion = answered(&mut api, delete, |asked| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": uid_text(1)}});
        asked.answer(200, &status);
    });
    assert_eq!(deletion.await.unwrap(), Deletion::Done);
    assert!(reader.get(&key("a")).is_none());
    stream.event("MODIFIED", &config_map("a", 1, 11)).await;
    stream.event("DELETED", &config_map("a", 1, 12)).await;
    stream.event("ADDED", &config_map("a", 2, 13)).await;
    eventually(|| changes.lock().unwrap().len() == 2).await;
    assert_eq!(heard(&changes), [change("a", "8", "", Origin::Write), change("a", "", "13", Origin::Watch)]);
}

#[tokio::test(start_paused = true)]
async fn a_write_enters_and_leaves_selections_by_its_labels() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let web = cache.reader::<Slim>(&Selection::all().labels("app=web").unwrap());
    cache.start();
    let asked = api.next().await;
    assert!(asked.target.ends_with("&labelSelector=app%3Dweb"), "{}", asked.target);
    let mut stream = asked.stream();
    stream.end_of_list(10).await;
    web.synced().await;
    for (version, app, inside) in
        [(11, "api", false), (12, "web", true), (13, "api", false), (14, "web", true)]
    {
        let configs = client.objects::<ConfigMap>();
        let apply = async move { configs.apply(&key("a"), &json!({}), &Apply::by("me")).await };
        answered(&mut api, apply, |asked| {
            let mut object = config_map("a", 1, version);
            object["metadata"]["labels"]["app"] = json!(app);
            asked.answer(200, &object);
        })
        .await
        .unwrap();
        assert_eq!(web.get(&key("a")).is_some(), inside, "version {version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_does_not_change_the_cache() {
    let (client, mut api, _cache, reader) = started();
    let _stream = api.stream_list(10, &[]).await;
    reader.synced().await;
    let configs = client.objects::<ConfigMap>();
    let apply = async move { configs.apply(&key("a"), &json!({}), &Apply::by("me").dry_run()).await };
    answered(&mut api, apply, |asked| {
        assert!(asked.target.ends_with("&dryRun=All"));
        asked.answer(201, &config_map("a", 1, 12));
    })
    .await
    .unwrap();
    assert!(reader.is_empty());
}
