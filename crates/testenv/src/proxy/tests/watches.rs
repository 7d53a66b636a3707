//! Faults of streams.

use futures::{FutureExt, StreamExt};
use kube::api::{WatchEvent, WatchParams};

use super::{Got, Rig};
use crate::proxy::{Answer, Delivery, Fault, Match, WatchFault};

fn of(resource: &str) -> Match {
    Match::watches().resource(resource)
}

/// An event that all others have had time to overtake: it went through server, proxy and client after them.
async fn round_trip(rig: &Rig, other: &mut super::Lines) {
    rig.server.emit("secrets", "overtakes\n");
    other.expect(&["overtakes"]).await;
}

#[tokio::test]
async fn events_flow_as_they_come() {
    let rig = Rig::start().await;
    let mut watch = rig.watch("pods").await;
    for event in ["one", "two"] {
        rig.server.emit("pods", &format!("{event}\n"));
        watch.expect(&[event]).await;
    }
    assert_eq!(rig.proxy.open_watches(&of("pods")), 1);
}

#[tokio::test]
async fn a_frozen_watch_delivers_what_was_waiting_in_order_when_it_is_released() {
    let rig = Rig::start().await;
    let (mut watch, mut other) = (rig.watch("pods").await, rig.watch("secrets").await);
    let frozen = rig.proxy.freeze_watches(&of("pods"));
    rig.server.emit("pods", "one\n");
    rig.server.emit("pods", "two\n");
    round_trip(&rig, &mut other).await;
    assert_eq!(watch.next().now_or_never(), None);
    frozen.release();
    rig.server.emit("pods", "three\n");
    watch.expect(&["one", "two", "three"]).await;
}

#[tokio::test]
async fn a_freeze_holds_for_watches_that_are_opened_while_it_lasts() {
    let rig = Rig::start().await;
    let frozen = rig.proxy.freeze_watches(&of("pods"));
    let (mut watch, mut other) = (rig.watch("pods").await, rig.watch("secrets").await);
    rig.server.emit("pods", "one\n");
    round_trip(&rig, &mut other).await;
    assert_eq!(watch.next().now_or_never(), None);
    drop(frozen);
    watch.expect(&["one"]).await;
}

#[tokio::test]
async fn a_fault_freezes_a_watch_at_its_event_until_it_is_released() {
    let rig = Rig::start().await;
    let fault = rig.proxy.add(Fault::on(of("pods")).first().then(WatchFault::Freeze.after_events(1)));
    let (mut watch, mut other) = (rig.watch("pods").await, rig.watch("secrets").await);
    rig.server.emit("pods", "one\ntwo\nthree\n");
    watch.expect(&["one"]).await;
    fault.wait_for_hits(1).await.unwrap();
    round_trip(&rig, &mut other).await;
    assert_eq!(watch.next().now_or_never(), None);
    fault.release();
    watch.expect(&["two", "three"]).await;
}

#[tokio::test]
async fn a_discarded_frozen_watch_is_cut() {
    let rig = Rig::start().await;
    let fault = rig.proxy.add(Fault::on(of("pods")).then(WatchFault::Freeze));
    let mut watch = rig.watch("pods").await;
    fault.wait_for_hits(1).await.unwrap();
    rig.server.emit("pods", "one\n");
    fault.discard();
    watch.expect_end(Got::Broken(String::new())).await;
}

#[tokio::test]
async fn an_open_watch_is_cut_on_both_sides() {
    let rig = Rig::start().await;
    let (mut watch, mut other) = (rig.watch("pods").await, rig.watch("secrets").await);
    rig.server.emit("pods", "one\n");
    watch.expect(&["one"]).await;
    assert_eq!(rig.proxy.cut_watches(&of("pods")), 1);
    watch.expect_end(Got::Broken(String::new())).await;
    rig.server.watches_closed("pods").await;
    rig.proxy.wait_for_open_watches(&of("pods"), 0).await.unwrap();
    assert_eq!(rig.proxy.seen()[0].client, Delivery::Broken(200));
    // The other one was not meant.
    round_trip(&rig, &mut other).await;
}

#[tokio::test]
async fn a_watch_is_cut_after_exactly_so_many_events_and_the_next_one_is_whole() {
    let rig = Rig::start().await;
    let fault = rig.proxy.add(Fault::on(of("pods")).first().then(WatchFault::Cut.after_events(2)));
    let mut watch = rig.watch("pods").await;
    rig.server.emit("pods", "one\ntwo\nthree\n");
    watch.expect(&["one", "two"]).await;
    watch.expect_end(Got::Broken(String::new())).await;
    assert_eq!(fault.hits(), 1);
    let mut again = rig.watch("pods").await;
    rig.server.emit("pods", "three\nfour\nfive\n");
    again.expect(&["three", "four", "five"]).await;
}

#[tokio::test]
async fn a_watch_can_be_cut_between_its_head_and_its_first_event() {
    let rig = Rig::start().await;
    rig.proxy.add(Fault::on(of("pods")).first().then(WatchFault::Cut));
    let mut watch = rig.watch("pods").await;
    watch.expect_end(Got::Broken(String::new())).await;
}

#[tokio::test]
async fn a_torn_event_arrives_by_half() {
    let rig = Rig::start().await;
    rig.proxy.add(Fault::on(of("pods")).first().then(WatchFault::Tear.after_events(1)));
    let mut watch = rig.watch("pods").await;
    rig.server.emit("pods", "one\n");
    watch.expect(&["one"]).await;
    rig.server.emit("pods", "12345678\n");
    watch.expect_end(Got::Broken("1234".to_owned())).await;
}

#[tokio::test]
async fn a_half_open_watch_is_dead_for_the_client_and_closed_for_the_server() {
    let rig = Rig::start().await;
    let (mut watch, mut other) = (rig.watch("pods").await, rig.watch("secrets").await);
    assert_eq!(rig.proxy.half_open(&of("pods")), 1);
    rig.server.watches_closed("pods").await;
    round_trip(&rig, &mut other).await;
    assert_eq!(watch.next().now_or_never(), None, "neither data nor an end");
    assert_eq!(rig.proxy.open_watches(&of("pods")), 1);
    drop(watch);
    rig.proxy.wait_for_open_watches(&of("pods"), 0).await.unwrap();
}

#[tokio::test]
async fn a_fault_makes_a_watch_half_open_at_its_event() {
    let rig = Rig::start().await;
    let fault = rig.proxy.add(Fault::on(of("pods")).first().then(WatchFault::HalfOpen.after_events(1)));
    let (mut watch, mut other) = (rig.watch("pods").await, rig.watch("secrets").await);
    rig.server.emit("pods", "one\ntwo\n");
    watch.expect(&["one"]).await;
    fault.wait_for_hits(1).await.unwrap();
    rig.server.watches_closed("pods").await;
    round_trip(&rig, &mut other).await;
    assert_eq!(watch.next().now_or_never(), None);
}

#[tokio::test]
async fn a_watch_can_end_in_good_order() {
    let rig = Rig::start().await;
    rig.proxy.add(Fault::on(of("pods")).first().then(WatchFault::End.after_events(1)));
    let mut watch = rig.watch("pods").await;
    rig.server.emit("pods", "one\ntwo\n");
    watch.expect(&["one"]).await;
    watch.expect_end(Got::End).await;
    rig.server.watches_closed("pods").await;
}

#[tokio::test]
async fn an_expired_watch_is_told_by_an_event_that_kube_understands() {
    let rig = Rig::start().await;
    let expired = WatchFault::Error(Answer::expired()).after_events(1);
    rig.proxy.add(Fault::on(of("configmaps")).first().then(expired));
    let configmaps = rig.configmaps();
    let mut events = Box::pin(configmaps.watch(&WatchParams::default(), "7").await.unwrap());
    rig.server.emit("configmaps", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"y\"}}}\n");
    let WatchEvent::Added(added) = events.next().await.unwrap().unwrap() else { panic!("no object") };
    assert_eq!(added.metadata.name.as_deref(), Some("y"));
    let WatchEvent::Error(status) = events.next().await.unwrap().unwrap() else { panic!("no error") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(events.next().await.is_none());
}
