//! Tests of events on a real API server: they aggregate, never block the code that records them, and are not
//! lost by a stop.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use tokio::task::JoinHandle;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::events::{self, EventType, Rate, Recorder, RecorderOptions, Regarding};
use windlass_runtime::manager::{BoxError, Manager, Runnable, Stage, Stop, Stopper};
use windlass_testenv::proxy::{Action, Fault, Match};
use windlass_testenv::{Rules, TestEnv, TestNamespace, TestUser, eventually, or_not_run, rule};

/// Returns a user with exactly the rules that a recorder needs.
async fn user(namespace: &TestNamespace) -> Result<TestUser> {
    let rules = Rules::default().in_namespace(rule("events.k8s.io", &["events"], &["create", "patch"]));
    Ok(namespace.client_for("recorder", &rules).await?)
}

async fn map(namespace: &TestNamespace) -> Result<Regarding> {
    let map = serde_json::from_value(json!({"metadata": {"name": "shop"}}))?;
    let map = namespace.api::<ConfigMap>().create(&PostParams::default(), &map).await?;
    Ok(Regarding::of(&map))
}

fn options() -> RecorderOptions {
    RecorderOptions::new("windlass.dev/shop").instance("shop-0").pause(Duration::from_millis(50))
}

/// A running publisher.
struct Running {
    stopper: Stopper,
    task: JoinHandle<()>,
}

fn start(config: kube::Config, options: RecorderOptions) -> Result<(Recorder, Running)> {
    let client = Client::new(config, ClientOptions::default())?;
    let (recorder, mut publisher) = Recorder::new(&client, options)?;
    let (stopper, stop) = Stop::pair();
    let task = tokio::spawn(async move { publisher.run(&stop).await });
    Ok((recorder, Running { stopper, task }))
}

impl Running {
    async fn stop(self) -> Result<()> {
        self.stopper.request();
        Ok(self.task.await?)
    }
}

async fn written(namespace: &TestNamespace) -> Result<Vec<Event>> {
    Ok(namespace.api::<Event>().list(&ListParams::default()).await?.items)
}

/// Waits until there is one Event object whose series has this count.
async fn counted(namespace: &TestNamespace, count: i32) -> Result<Event> {
    let found = eventually(format!("a series of {count}"), || async {
        let events = written(namespace).await.map_err(|error| error.to_string())?;
        match &events[..] {
            [event] if event.series.as_ref().is_some_and(|series| series.count == count) => Ok(event.clone()),
            _ => Err(format!("{events:?}")),
        }
    })
    .await?;
    Ok(found)
}

#[tokio::test]
async fn equal_events_are_one_object_with_a_count() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-series").await?;
    let (map, user) = (map(&namespace).await?, user(&namespace).await?);
    let (recorder, running) = start(user.config(), options())?;
    let record = || recorder.event(&map, EventType::Warning, "Late", "Wait", "the bus is late");
    record();
    let first = eventually("the first event", || async {
        let events = written(&namespace).await.map_err(|error| error.to_string())?;
        events.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await?;
    assert_eq!(first.series, None);
    assert_eq!(first.type_.as_deref(), Some("Warning"));
    assert_eq!((first.reason.as_deref(), first.action.as_deref()), (Some("Late"), Some("Wait")));
    assert_eq!(first.note.as_deref(), Some("the bus is late"));
    assert_eq!(first.reporting_controller.as_deref(), Some("windlass.dev/shop"));
    assert_eq!(first.reporting_instance.as_deref(), Some("shop-0"));
    assert_eq!(first.regarding.clone().context("regarding")?.name.as_deref(), Some("shop"));
    for _ in 0..41 {
        record();
    }
    let series = counted(&namespace, 42).await?;
    assert_eq!(series.metadata.name, first.metadata.name);
    assert!(Some(series.series.context("series")?.last_observed_time) > first.event_time);
    let stats = recorder.stats();
    assert_eq!((stats.recorded, stats.created), (42, 1));
    assert!(stats.patched <= 4, "{stats:?}");
    running.stop().await
}

#[tokio::test]
async fn a_deleted_event_object_is_recreated_with_its_count() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-gone").await?;
    let (map, user) = (map(&namespace).await?, user(&namespace).await?);
    let (recorder, running) = start(user.config(), options())?;
    let record = || recorder.event(&map, EventType::Normal, "Synced", "Apply", "done");
    record();
    record();
    counted(&namespace, 2).await?;
    namespace.api::<Event>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    record();
    counted(&namespace, 3).await?;
    running.stop().await
}

#[tokio::test]
async fn events_are_recorded_while_the_api_server_does_not_answer_and_overflow_is_counted() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-held").await?;
    let (map, user) = (map(&namespace).await?, user(&namespace).await?);
    let proxy = env.fault_proxy().await?;
    let held = proxy.add(Fault::on(Match::writes().resource("events")).first().then(Action::Hold));
    let config = user.config_through(&proxy.url())?;
    let (recorder, running) = start(config, options().capacity(10))?;
    recorder.event(&map, EventType::Normal, "First", "Test", "held up in the network");
    held.wait_for_hits(1).await?;
    // Without an await in between, so that the channel takes only as much as it holds.
    for _ in 0..1000 {
        recorder.event(&map, EventType::Normal, "Second", "Test", "not held up");
    }
    assert_eq!(recorder.stats().recorded, 1001);
    assert_eq!(recorder.stats().overflown, 990);
    // The publisher continues to count while its write hangs.
    eventually("room for more", || async {
        let before = recorder.stats().overflown;
        recorder.event(&map, EventType::Normal, "Second", "Test", "not held up");
        let after = recorder.stats().overflown;
        if before == after { Ok(()) } else { Err("no room".to_owned()) }
    })
    .await?;
    held.release();
    let taken = recorder.stats().recorded - recorder.stats().overflown - 1;
    running.stop().await?;
    let counts: Vec<_> = written(&namespace)
        .await?
        .into_iter()
        .map(|event| (event.reason.unwrap_or_default(), event.series.map_or(1, |series| series.count)))
        .collect();
    assert!(counts.contains(&("First".to_owned(), 1)), "{counts:?}");
    assert!(counts.contains(&("Second".to_owned(), i32::try_from(taken)?)), "{counts:?} of {taken}");
    Ok(())
}

#[tokio::test]
async fn a_lost_response_does_not_create_a_second_event_object() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-twice").await?;
    let (map, user) = (map(&namespace).await?, user(&namespace).await?);
    let proxy = env.fault_proxy().await?;
    let lost = proxy.add(Fault::on(Match::writes().resource("events")).first().then(Action::DropAfter));
    let (recorder, running) = start(user.config_through(&proxy.url())?, options())?;
    recorder.event(&map, EventType::Normal, "Once", "Test", "and not twice");
    lost.wait_for_hits(1).await?;
    eventually("the second attempt", || async {
        let stats = recorder.stats();
        if stats.created == 1 { Ok(()) } else { Err(format!("{stats:?}")) }
    })
    .await?;
    assert_eq!(written(&namespace).await?.len(), 1);
    running.stop().await
}

#[tokio::test]
async fn a_stop_writes_remaining_events_after_all_recorders_have_ended() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-flush").await?;
    let (map, user) = (map(&namespace).await?, user(&namespace).await?);
    let client = Client::new(user.config(), ClientOptions::default())?;
    // A delay so long that only a flush can write a count in this test.
    let options = RecorderOptions::new("shop").pause(Duration::from_hours(1));
    let (recorder, publisher) = Recorder::new(&client, options)?;
    let mut manager = Manager::new();
    recorder.show_in(manager.metrics());
    let metrics = manager.metrics().clone();
    manager.add(Stage::Everywhere, publisher.into_runnable())?;
    let (speaker, about) = (recorder.clone(), map.clone());
    let runnable = Runnable::new("work", move |context| {
        let (recorder, map) = (speaker.clone(), about.clone());
        async move {
            context.ready();
            recorder.event(&map, EventType::Normal, "Working", "Work", "busy");
            context.stop.requested().await;
            for _ in 0..4 {
                recorder.event(&map, EventType::Normal, "Working", "Work", "busy");
            }
            recorder.event(&map, EventType::Normal, "Stopped", "Stop", "the last word");
            Ok::<_, BoxError>(())
        }
    });
    manager.add(Stage::Controllers, runnable)?;
    let (stopper, stop) = Stop::pair();
    let run = tokio::spawn(manager.run_until(stop));
    eventually("the first event", || async {
        let stats = recorder.stats();
        if stats.created == 1 { Ok(()) } else { Err(format!("{stats:?}")) }
    })
    .await?;
    stopper.request();
    run.await??;
    let mut counts: Vec<_> = written(&namespace)
        .await?
        .into_iter()
        .map(|event| (event.reason.unwrap_or_default(), event.series.map_or(1, |series| series.count)))
        .collect();
    counts.sort();
    assert_eq!(counts, [("Stopped".to_owned(), 1), ("Working".to_owned(), 5)]);
    recorder.event(&map, EventType::Normal, "Ghost", "Haunt", "nobody listens any more");
    let text = metrics.encode();
    for line in [
        "windlass_events_recorded_total 7\n",
        "windlass_events_written_total{verb=\"create\"} 2\n",
        "windlass_events_written_total{verb=\"patch\"} 1\n",
        "windlass_events_dropped_total{reason=\"overflow\"} 1\n",
        "windlass_events_dropped_total{reason=\"rate\"} 0\n",
        "windlass_events_dropped_total{reason=\"failed\"} 0\n",
        "windlass_events_waiting 0\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    Ok(())
}

#[tokio::test]
async fn event_writes_per_object_are_limited_and_forbidden_events_are_dropped() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-rate").await?;
    let (map, user) = (map(&namespace).await?, user(&namespace).await?);
    let rate = Rate { burst: 3, refill: Duration::from_hours(1) };
    let (recorder, running) = start(user.config(), options().rate(rate))?;
    for n in 0..10 {
        recorder.event(&map, EventType::Normal, "Chatty", "Talk", format!("word {n}"));
    }
    // An account of one namespace may not write events about a Node, which are in `default`.
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "some-node"}}))?;
    recorder.event(&Regarding::of(&node), EventType::Normal, "Foreign", "Talk", "of others");
    running.stop().await?;
    let stats = recorder.stats();
    assert_eq!((stats.recorded, stats.created, stats.limited, stats.failed), (11, 3, 7, 1), "{stats:?}");
    assert_eq!(written(&namespace).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn events_about_cluster_scoped_and_related_objects_and_of_any_length_are_accepted() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("events-odd").await?;
    let map = map(&namespace).await?;
    let (recorder, running) = start(env.config().clone(), options())?;
    let name = format!("windlass-{}", namespace.name());
    let node: Node = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let long = "ü".repeat(3000);
    let about_node = events::Event::new(&Regarding::of(&node), EventType::Warning, &long, "", &long);
    recorder.record(about_node.related(&map));
    running.stop().await?;
    assert_eq!((recorder.stats().created, recorder.stats().failed), (1, 0));
    let all: Api<Event> = Api::namespaced(env.client(), "default");
    let ours = |event: &Event| event.regarding.as_ref().is_some_and(|it| it.name.as_ref() == Some(&name));
    let events = all.list(&ListParams::default()).await?.items;
    let event = events.iter().find(|event| ours(event)).context("the event")?;
    assert_eq!(event.related.as_ref().and_then(|related| related.kind.as_deref()), Some("ConfigMap"));
    assert!(event.note.as_ref().is_some_and(|note| note.len() <= 1024 && note.ends_with('…')));
    all.delete(event.metadata.name.as_deref().context("its name")?, &DeleteParams::default()).await?;
    Ok(())
}
