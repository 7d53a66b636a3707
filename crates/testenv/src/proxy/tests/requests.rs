//! Faults of single requests.

use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, RETRY_AFTER};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ObjectMeta, PostParams};

use super::{Rig, patch, patches};
use crate::proxy::{Action, Answer, Delivery, Fault, Match, RequestVerb, Script};

#[tokio::test]
async fn without_faults_the_proxy_is_transparent() {
    let rig = Rig::start().await;
    let found = rig.configmaps().get("y").await.unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("y"));

    let headers = rig.server.last_headers();
    assert_eq!(headers[AUTHORIZATION], "Bearer t0ken");
    assert_eq!(headers[HOST], format!("127.0.0.1:{}", rig.server.port()));

    let seen = rig.proxy.seen().pop().unwrap();
    assert_eq!(seen.request.user_agent.as_deref(), Some("operator/replica-a"));
    assert_eq!(seen.to_string(), "#1 get configmaps x/y: server 200, client 200");
}

#[tokio::test]
async fn a_large_body_passes_in_both_directions() {
    let rig = Rig::start().await;
    let sent = ConfigMap {
        metadata: ObjectMeta { name: Some("large".to_owned()), ..ObjectMeta::default() },
        data: Some([("k".to_owned(), "v".repeat(2 << 20))].into()),
        ..ConfigMap::default()
    };
    let echoed = rig.configmaps().create(&PostParams::default(), &sent).await.unwrap();
    assert_eq!(echoed.data, sent.data);
}

#[tokio::test]
async fn a_request_dropped_before_the_server_is_not_committed() {
    let rig = Rig::start().await;
    let fault = rig.proxy.add(Fault::on(patches()).first().then(Action::DropBefore));
    assert!(matches!(patch(rig.configmaps()).await, Err(kube::Error::Service(_))));
    assert_eq!(rig.server.writes(), [""; 0]);
    assert_eq!(fault.hits(), 1);
    patch(rig.configmaps()).await.unwrap();
    assert_eq!(rig.server.writes().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_leaves_the_write_committed() {
    let rig = Rig::start().await;
    let fault = rig.proxy.add(Fault::on(patches()).first().then(Action::DropAfter));
    assert!(matches!(patch(rig.configmaps()).await, Err(kube::Error::Service(_))));
    assert_eq!(rig.server.writes().len(), 1);
    let seen = rig.proxy.seen().pop().unwrap();
    assert_eq!((seen.server, seen.client), (Some(200), Delivery::Closed));
    assert_eq!(seen.fault.as_ref(), Some(fault.fault()));
}

#[tokio::test]
async fn a_held_request_reaches_the_server_when_it_is_released() {
    let rig = Rig::start().await;
    let held = rig.proxy.add(Fault::on(patches()).first().then(Action::Hold));
    let request = tokio::spawn(patch(rig.configmaps()));
    held.wait_for_hits(1).await.unwrap();
    // Other requests are not behind it.
    rig.configmaps().get("z").await.unwrap();
    assert_eq!(rig.server.writes(), [""; 0]);
    assert!(!request.is_finished());
    held.release();
    request.await.unwrap().unwrap();
    assert_eq!(rig.server.writes().len(), 1);
}

#[tokio::test]
async fn a_held_request_arrives_late_even_if_its_client_is_gone() {
    let rig = Rig::start().await;
    let held = rig.proxy.add(Fault::on(patches()).first().then(Action::Hold));
    let request = tokio::spawn(patch(rig.configmaps()));
    held.wait_for_hits(1).await.unwrap();
    request.abort();
    let left = |seen: &crate::proxy::LoggedRequest| seen.client == Delivery::Left;
    rig.proxy.wait_for_seen("a client that left", left).await.unwrap();
    assert_eq!(rig.server.writes(), [""; 0]);
    held.release();
    rig.server.wait_for_writes(1).await;
    assert_eq!(rig.server.writes(), ["PATCH /api/v1/namespaces/x/configmaps/y"]);
}

#[tokio::test]
async fn a_discarded_request_never_reaches_the_server() {
    let rig = Rig::start().await;
    let held = rig.proxy.add(Fault::on(patches()).first().then(Action::Hold));
    let request = tokio::spawn(patch(rig.configmaps()));
    held.wait_for_hits(1).await.unwrap();
    held.discard();
    assert!(request.await.unwrap().is_err());
    held.remove();
    patch(rig.configmaps()).await.unwrap();
    assert_eq!(rig.server.writes().len(), 1, "only the second one");
}

#[tokio::test]
async fn a_held_answer_means_that_the_server_has_committed() {
    let rig = Rig::start().await;
    let held = rig.proxy.add(Fault::on(patches()).first().then(Action::HoldAnswer));
    let request = tokio::spawn(patch(rig.configmaps()));
    held.wait_for_hits(1).await.unwrap();
    assert_eq!(rig.server.writes().len(), 1);
    assert_eq!(rig.proxy.seen()[0].client, Delivery::Waiting);
    held.release();
    assert_eq!(request.await.unwrap().unwrap().metadata.name.as_deref(), Some("y"));
}

#[tokio::test]
async fn a_discarded_answer_is_lost() {
    let rig = Rig::start().await;
    let held = rig.proxy.add(Fault::on(patches()).first().then(Action::HoldAnswer));
    let request = tokio::spawn(patch(rig.configmaps()));
    held.wait_for_hits(1).await.unwrap();
    held.discard();
    assert!(request.await.unwrap().is_err());
    assert_eq!(rig.server.writes().len(), 1);
}

#[tokio::test]
async fn a_held_request_is_released_when_its_fault_is_removed() {
    let rig = Rig::start().await;
    let held = rig.proxy.add(Fault::on(patches()).then(Action::Hold));
    let (first, second) = (tokio::spawn(patch(rig.configmaps())), tokio::spawn(patch(rig.configmaps())));
    held.wait_for_hits(2).await.unwrap();
    rig.proxy.clear();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    patch(rig.configmaps()).await.unwrap();
    assert_eq!(held.hits(), 2, "the third was not held");
}

#[tokio::test]
async fn a_delayed_request_takes_its_time() {
    let rig = Rig::start().await;
    rig.proxy.add(Fault::on(patches()).first().then(Action::Delay(Duration::from_hours(1))));
    // The clock leaps whenever all are waiting: the hour passes at once, and only if somebody waits for it.
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    patch(rig.configmaps()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_hours(1));
    assert_eq!(rig.server.writes().len(), 1);
}

#[tokio::test]
async fn an_answer_is_what_a_kube_client_takes_for_the_servers() {
    let rig = Rig::start().await;
    for (answer, code, reason) in [
        (Answer::forbidden(), 403, "Forbidden"),
        (Answer::not_found(), 404, "NotFound"),
        (Answer::conflict(), 409, "Conflict"),
        (Answer::already_exists(), 409, "AlreadyExists"),
        (Answer::expired(), 410, "Expired"),
        (Answer::too_many_requests(Duration::from_secs(7)), 429, "TooManyRequests"),
        (Answer::internal_error(), 500, "InternalError"),
        (Answer::unavailable(), 503, "ServiceUnavailable"),
        (Answer::timeout(), 504, "Timeout"),
        (Answer::new(418, "Teapot", "short and stout"), 418, "Teapot"),
    ] {
        let message = answer.message.clone();
        let fault = rig.proxy.add(Fault::on(patches()).then(answer));
        let Err(kube::Error::Api(status)) = patch(rig.configmaps()).await else {
            panic!("{reason}: no answer of an API server");
        };
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, &*message));
        assert_eq!(status.details.unwrap().name, "y");
        fault.remove();
    }
    assert_eq!(rig.server.writes(), [""; 0]);
    assert!(rig.proxy.seen().iter().all(|seen| seen.server.is_none()));
}

#[tokio::test]
async fn a_429_says_when_to_come_back() {
    let rig = Rig::start().await;
    rig.proxy.add(Fault::on(Match::any()).then(Answer::too_many_requests(Duration::from_secs(7))));
    let request = http::Request::get("/version").body(kube::client::Body::empty()).unwrap();
    let response = rig.client.send(request).await.unwrap();
    assert_eq!(response.headers()[RETRY_AFTER], "7");
}

#[tokio::test]
async fn a_script_plays_in_the_order_of_the_requests() {
    let rig = Rig::start().await;
    let handles = rig.proxy.set(Script::from([
        Fault::on(patches()).nth(2).then(Action::DropAfter),
        Fault::on(Match::writes()).nth(3).then(Answer::conflict()),
    ]));
    let outcomes = [
        patch(rig.configmaps()).await.is_ok(),
        patch(rig.configmaps()).await.is_ok(),
        rig.configmaps().delete("y", &DeleteParams::default()).await.is_ok(),
        patch(rig.configmaps()).await.is_ok(),
    ];
    assert_eq!(outcomes, [true, false, false, true]);
    let hits: Vec<u64> = handles.iter().map(crate::proxy::FaultHandle::hits).collect();
    assert_eq!(hits, [1, 1]);
    let log: Vec<String> = rig.proxy.seen().iter().map(ToString::to_string).collect();
    assert_eq!(
        log,
        [
            "#1 patch configmaps x/y: server 200, client 200",
            "#2 patch configmaps x/y: server 200, client closed \
             [2nd patch of configmaps x/y: drop the connection after the server committed]",
            "#3 delete configmaps x/y: no answer of the server, client 409 [3rd write: answer 409 Conflict]",
            "#4 patch configmaps x/y: server 200, client 200",
        ]
    );
}

#[tokio::test]
async fn a_wait_for_a_request_finds_past_and_future_ones() {
    let rig = Rig::start().await;
    patch(rig.configmaps()).await.unwrap();
    let first = rig.proxy.wait_for_request(&patches()).await.unwrap();
    assert_eq!(first.sequence, rig.proxy.last_sequence());
    let gets = Match::verb(RequestVerb::Get);
    let later = rig.proxy.wait_for_request_after(first.sequence, &gets);
    let (found, read) = tokio::join!(later, async { rig.configmaps().get("z").await });
    assert_eq!((found.unwrap().sequence, read.is_ok()), (2, true));
}
