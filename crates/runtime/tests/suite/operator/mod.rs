//! A small process: a manager with controllers, run inside of a test.
#![allow(dead_code)] // each test binary uses its share

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::sync::watch;
use windlass_runtime::cache::{Cache, Full, Reader, Selection, WatchTiming};
use windlass_runtime::client::{Apply, Client, ClientOptions, RetryPolicy};
use windlass_runtime::controller::{Controller, Error, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::{Manager, Stop};
use windlass_runtime::object::owner::Owner;
use windlass_testenv::eventually;
use windlass_testenv::world::Running;

/// The number of reconciles of each key.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<watch::Sender<HashMap<String, usize>>>);

impl Runs {
    pub(crate) fn count(&self, key: &ObjectKey) -> usize {
        let mut count = 0;
        self.0.send_modify(|runs| {
            let runs = runs.entry(key.to_string()).or_default();
            *runs += 1;
            count = *runs;
        });
        count
    }

    pub(crate) fn of(&self, key: &str) -> usize {
        self.0.borrow().get(key).copied().unwrap_or_default()
    }

    pub(crate) async fn at_least(&self, key: &str, times: usize) -> Result<()> {
        let mut runs = self.0.subscribe();
        let seen = runs.wait_for(|runs| runs.get(key).copied().unwrap_or_default() >= times);
        let waited = tokio::time::timeout(Duration::from_mins(1), seen).await;
        waited.with_context(|| format!("{key} was reconciled {} times, not {times}", self.of(key)))??;
        Ok(())
    }
}

/// A running manager.
pub(crate) struct Operator(Running);

impl Deref for Operator {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

impl Operator {
    pub(crate) fn start(cache: &Cache, controllers: impl IntoIterator<Item = Controller>) -> Result<Self> {
        let mut manager = Manager::new();
        manager.cache(cache)?;
        for controller in controllers {
            manager.controller(controller)?;
        }
        let (stopper, stop) = Stop::pair();
        let (readiness, metrics) = (manager.readiness().clone(), manager.metrics().clone());
        let report = move || {
            let report = readiness.report();
            (report.is_ready(), report.to_string())
        };
        let running = manager.run_until(stop);
        Ok(Self(Running::new(report, move || metrics.encode(), move || stopper.request(), running)))
    }

    /// The value of a metric, by the start of its line.
    pub(crate) fn metric(&self, start: &str) -> f64 {
        self.metric_value(start).unwrap_or(f64::NAN)
    }

    pub(crate) async fn stop(self) -> Result<()> {
        Ok(self.0.stop().await?)
    }
}

/// Returns a client with few retries: tests want to see the errors behind them.
pub(crate) fn client(config: kube::Config) -> Result<Client> {
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    Ok(Client::new(
        config,
        ClientOptions { retry, deadline: Duration::from_secs(10), ..ClientOptions::default() },
    )?)
}

/// Returns a cache with short delays.
pub(crate) fn cache(client: &Client) -> Cache {
    let timing = WatchTiming {
        backoff: (Duration::from_millis(20), Duration::from_millis(200)),
        slow_backoff: (Duration::from_millis(50), Duration::from_millis(200)),
        idle: Duration::from_secs(150),
        answer: Duration::from_secs(5),
        ..WatchTiming::default()
    };
    Cache::with_timing(client, timing)
}

pub(crate) fn labelled(namespace: &str, labels: &str) -> Result<Selection> {
    Ok(Selection::all().in_namespace(namespace).labels(labels)?)
}

pub(crate) fn original(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"mirror": "original"}}, "data": {"value": value}}))
    .expect("a ConfigMap")
}

/// A controller that keeps a copy of each ConfigMap labelled `mirror=original`.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) client: Client,
    pub(crate) originals: Reader<Full<ConfigMap>>,
    pub(crate) copies: Reader<Full<ConfigMap>>,
}

impl Mirror {
    pub(crate) fn new(client: &Client, cache: &Cache, namespace: &str) -> Result<Self> {
        Ok(Self {
            client: client.clone(),
            originals: cache.reader(&labelled(namespace, "mirror=original")?),
            copies: cache.reader(&labelled(namespace, "mirror=copy")?),
        })
    }

    pub(crate) async fn mirror(&self, key: ObjectKey) -> Result<Requeue, Error> {
        let Some(original) = self.originals.get(&key) else { return Ok(Requeue::OnChange) };
        let copy_key = ObjectKey::new(key.namespace().map(Into::into), format!("{}-copy", key.name()));
        if self.copies.get(&copy_key).is_some_and(|copy| copy.data == original.data) {
            return Ok(Requeue::OnChange);
        }
        let owner = Owner::of(original.object())?.controller_reference(key.namespace())?;
        let copy = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": original.data,
            "metadata": {"name": copy_key.name(), "labels": {"mirror": "copy"}, "ownerReferences": [owner]}});
        let _: ConfigMap =
            self.client.objects().apply(&copy_key, &copy, &Apply::by("mirror").force()).await?;
        Ok(Requeue::OnChange)
    }

    pub(crate) fn controller(self, runs: &Runs) -> Result<Controller> {
        let runs = runs.clone();
        let (originals, copies) = (self.originals.clone(), self.copies.clone());
        Ok(Controller::for_(originals).owns(copies).name("mirror").workers(2).build(
            move |key: ObjectKey| {
                let (mirror, runs) = (self.clone(), runs.clone());
                async move {
                    let outcome = mirror.mirror(key.clone()).await;
                    runs.count(&key);
                    outcome
                }
            },
        )?)
    }
}

/// Waits until an object passes `check`.
pub(crate) async fn object_is(
    api: &kube::Api<ConfigMap>,
    name: &str,
    what: &str,
    check: impl Fn(Option<&ConfigMap>) -> bool,
) -> Result<()> {
    eventually(format!("{name}: {what}"), || async {
        let object = api.get_opt(name).await.map_err(|error| error.to_string())?;
        if check(object.as_ref()) { Ok(()) } else { Err(format!("{:?}", object.map(|object| object.data))) }
    })
    .await?;
    Ok(())
}

pub(crate) fn value(object: Option<&ConfigMap>) -> Option<&str> {
    object?.data.as_ref()?.get("value").map(String::as_str)
}
