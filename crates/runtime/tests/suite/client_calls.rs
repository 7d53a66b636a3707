//! Tests of the client's calls against a scripted server, on a paused clock.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::fake_api;

use std::io::ErrorKind;
use std::time::Duration;

use fake_api::{Asked, FakeApi, config_map, fake_api, streaming, uid_text};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use windlass_runtime::cache::{Cache, MetadataOnly, Selection};
use windlass_runtime::client::{
    Apply, Client, ClientError, Delete, Deletion, Evict, Failure, Patch, Propagation,
};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{ResourceVersion, Uid};

fn key() -> ObjectKey {
    ObjectKey::namespaced("n", "a")
}

fn get(client: &Client) -> JoinHandle<Result<ConfigMap, ClientError>> {
    let configs = client.objects::<ConfigMap>();
    tokio::spawn(async move { configs.get(&key()).await })
}

fn create(client: &Client) -> JoinHandle<Result<ConfigMap, ClientError>> {
    let configs = client.objects::<ConfigMap>();
    tokio::spawn(async move { configs.create(&key(), &json!({})).await })
}

fn apply(client: &Client) -> JoinHandle<Result<ConfigMap, ClientError>> {
    let configs = client.objects::<ConfigMap>();
    tokio::spawn(async move { configs.apply(&key(), &json!({}), &Apply::by("me")).await })
}

fn body(asked: &Asked) -> Value {
    serde_json::from_slice(&asked.body).unwrap()
}

async fn error_of<T: std::fmt::Debug>(call: JoinHandle<Result<T, ClientError>>) -> ClientError {
    call.await.unwrap().unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_response_ends_at_its_deadline() {
    let (client, mut api) = fake_api();
    let before = Instant::now();
    let call = get(&client);
    let _unanswered = api.next().await;
    let error = error_of(call).await;
    assert_eq!(*error.failure(), Failure::Timeout);
    assert_eq!(error.to_string(), "cannot get ConfigMap n/a: no response in time: within 30 s");
    assert_eq!(before.elapsed().as_secs(), 30);
    assert_eq!(client.stats().timeouts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_response_body_that_never_ends_ends_at_the_deadline_too() {
    let (client, mut api) = fake_api();
    let call = get(&client);
    let _open = api.next().await.stream();
    assert_eq!(*error_of(call).await.failure(), Failure::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_header_is_honoured_for_any_call_and_counted() {
    let (client, mut api) = fake_api();
    let call = create(&client);
    let before = Instant::now();
    api.next().await.answer_with(429, &[("retry-after", "3")], &json!({"code": 429}));
    api.next().await.answer(201, &config_map("a", 1, 2));
    call.await.unwrap().unwrap();
    assert!(before.elapsed() >= Duration::from_secs(3));
    assert_eq!(client.stats().retries(), 1);
    assert_eq!(client.stats().requests(), [("POST".to_owned(), 201, 1), ("POST".to_owned(), 429, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_long_retry_after_header_is_left_to_the_caller() {
    let (client, mut api) = fake_api();
    let call = apply(&client);
    api.next().await.answer_with(429, &[("retry-after", "60")], &json!({"code": 429}));
    assert_eq!(error_of(call).await.retry_after(), Some(Duration::from_mins(1)));
    assert!(api.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_a_call_are_bounded() {
    let (client, mut api) = fake_api();
    let call = get(&client);
    for _ in 0..4 {
        api.next().await.refuse(503, "ServiceUnavailable", "starting");
    }
    assert_eq!(*error_of(call).await.failure(), Failure::Unavailable);
    assert!(api.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_create_is_not_repeated_when_it_may_have_been_done() {
    let (client, mut api) = fake_api();
    let call = create(&client);
    api.next().await.cut();
    assert_eq!(*error_of(call).await.failure(), Failure::Unavailable);
    assert!(api.is_quiet());

    let call = create(&client);
    api.next().await.fail(ErrorKind::ConnectionRefused);
    api.next().await.answer(201, &config_map("a", 1, 2));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_apply_is_repeated_because_it_is_idempotent() {
    let (client, mut api) = fake_api();
    let call = apply(&client);
    api.next().await.cut();
    let asked = api.next().await;
    assert_eq!(asked.content_type, "application/apply-patch+yaml");
    asked.answer(200, &config_map("a", 1, 2));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_rejected_object_is_reported_with_its_fields() {
    let (client, mut api) = fake_api();
    let call = apply(&client);
    let status = json!({"kind": "Status", "code": 422, "reason": "Invalid", "message": "ConfigMap \"a\" is invalid",
        "details": {"causes": [{"reason": "FieldValueRequired", "message": "Required", "field": "data.k"}]}});
    api.next().await.answer(422, &status);
    let error = error_of(call).await;
    let Failure::Invalid(causes) = error.failure() else { panic!("{error:?}") };
    assert_eq!((&*causes[0].field, &*causes[0].reason), ("data.k", "FieldValueRequired"));
    assert_eq!(error.to_string(), "cannot apply ConfigMap n/a: invalid data.k: ConfigMap \"a\" is invalid");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_does_not_decode_is_not_quoted() {
    let (client, mut api) = fake_api();
    let secrets = client.objects::<Secret>();
    let call = tokio::spawn(async move { secrets.get(&key()).await });
    api.next().await.answer(200, &json!({"metadata": {"name": "a"}, "data": {"password": ["hunter2"]}}));
    let error = error_of(call).await;
    assert_eq!(*error.failure(), Failure::Garbled);
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn requests_carry_the_user_agent() {
    let (client, mut api) = fake_api();
    let _call = get(&client);
    assert!(api.next().await.user_agent.starts_with("windlass/"));
}

#[tokio::test(start_paused = true)]
async fn a_list_follows_its_pages_and_selectors() {
    let (client, mut api) = fake_api();
    let configs = client.objects::<ConfigMap>();
    let selection = Selection::all().in_namespace("n").labels("a in (b,c)").unwrap();
    let call = tokio::spawn(async move { configs.list(&selection).await });
    let first = api.next().await;
    assert_eq!(first.target, "/api/v1/namespaces/n/configmaps?labelSelector=a%20in%20%28b%2Cc%29&limit=500");
    first.answer(200, &json!({"metadata": {"continue": "x/y"}, "items": [config_map("a", 1, 2)]}));
    let second = api.next().await;
    assert!(second.target.ends_with("&limit=500&continue=x%2Fy"), "{}", second.target);
    second.answer(200, &json!({"metadata": {}, "items": null}));
    assert_eq!(call.await.unwrap().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_object_is_an_error_for_get_and_none_for_find() {
    let (client, mut api) = fake_api();
    let configs = client.objects::<ConfigMap>();
    let call = tokio::spawn(async move { configs.find(&key()).await });
    api.next().await.refuse(404, "NotFound", "no");
    assert!(call.await.unwrap().unwrap().is_none());
    let call = get(&client);
    api.next().await.refuse(404, "NotFound", "no");
    assert!(error_of(call).await.is_not_found());
}

#[tokio::test(start_paused = true)]
async fn a_delete_carries_its_preconditions() {
    let (client, mut api) = fake_api();
    let configs = client.objects::<ConfigMap>();
    let uid: Uid = uid_text(1).parse().unwrap();
    let delete = Delete::incarnation(uid)
        .unchanged_since(ResourceVersion::number(7))
        .propagation(Propagation::Foreground)
        .grace(Duration::from_secs(5));
    let call = tokio::spawn(async move { configs.delete(&key(), &delete).await });
    let asked = api.next().await;
    assert_eq!(
        body(&asked),
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": uid_text(1), "resourceVersion": "7"}})
    );
    let mut held = config_map("a", 1, 8);
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    held["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    held["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    asked.answer(200, &held);
    assert_eq!(call.await.unwrap().unwrap(), Deletion::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_failed_precondition_is_a_conflict() {
    let (client, mut api) = fake_api();
    let configs = client.objects::<ConfigMap>();
    let call = tokio::spawn(async move { configs.delete(&key(), &Delete::any()).await });
    api.next().await.refuse(409, "Conflict", "Precondition failed: UID in precondition");
    assert_eq!(*error_of(call).await.failure(), Failure::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_patch_names_its_manager() {
    let (client, mut api) = fake_api();
    let configs = client.objects::<ConfigMap>();
    let patch = Patch::Merge(json!({"data": {"k": null}}));
    let call = tokio::spawn(async move { configs.patch(&key(), &patch, "me & you").await });
    let asked = api.next().await;
    assert_eq!(asked.target, "/api/v1/namespaces/n/configmaps/a?fieldManager=me%20%26%20you");
    assert_eq!(asked.content_type, "application/merge-patch+json");
    asked.answer(200, &config_map("a", 1, 2));
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_status_is_applied_to_its_own_path() {
    let (client, mut api) = fake_api();
    let configs = client.objects::<ConfigMap>();
    let call = tokio::spawn(async move { configs.apply_status(&key(), &json!({}), &Apply::by("me")).await });
    let asked = api.next().await;
    assert_eq!(asked.target, "/api/v1/namespaces/n/configmaps/a/status?fieldManager=me&force=false");
    asked.refuse(404, "NotFound", "no");
    assert!(error_of(call).await.to_string().starts_with("cannot apply status of ConfigMap n/a: not found"));
}

#[tokio::test(start_paused = true)]
async fn a_scaled_object_is_in_the_cache_before_scale_returns() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let deployments = cache.reader::<MetadataOnly<Deployment>>(&Selection::all());
    cache.start();
    let _stream = api.stream_list(10, &[]).await;
    deployments.synced().await;

    let objects = client.objects::<Deployment>();
    let call = tokio::spawn(async move { objects.scale(&key(), 3).await });
    let asked = api.next().await;
    assert_eq!(asked.target, "/apis/apps/v1/namespaces/n/deployments/a/scale");
    asked.answer(200, &json!({"kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}}));
    api.next().await.answer(200, &config_map("a", 1, 12));
    assert_eq!(call.await.unwrap().unwrap(), 3);
    assert_eq!(deployments.get(&key()).unwrap().resource_version, ResourceVersion::number(12));
}

#[tokio::test(start_paused = true)]
async fn an_eviction_denied_by_a_disruption_budget_is_not_repeated() {
    let (client, mut api) = fake_api();
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.evict(&key(), &Evict::any()).await });
    let asked = api.next().await;
    assert_eq!(asked.target, "/api/v1/namespaces/n/pods/a/eviction");
    asked.answer_with(429, &[("retry-after", "1")], &json!({"code": 429, "message": "budget"}));
    assert!(matches!(error_of(call).await.failure(), Failure::Throttled { .. }));
    assert!(api.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_pod_deleted_by_its_eviction_is_removed_from_the_cache() {
    let (client, mut api) = fake_api();
    let cache = Cache::with_timing(&client, streaming());
    let pods = cache.reader::<MetadataOnly<Pod>>(&Selection::all());
    cache.start();
    let _stream = api.stream_list(10, &[config_map("a", 1, 8)]).await;
    pods.synced().await;
    let uid = pods.get(&key()).unwrap().uid;
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.evict(&key(), &Evict::incarnation(uid)).await });
    answer_eviction(&mut api).await;
    api.next().await.refuse(404, "NotFound", "no");
    call.await.unwrap().unwrap();
    assert!(pods.is_empty());
}

async fn answer_eviction(api: &mut FakeApi) {
    let asked = api.next().await;
    assert_eq!(body(&asked)["deleteOptions"]["preconditions"]["uid"], json!(uid_text(1)));
    asked.answer(201, &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}));
}
