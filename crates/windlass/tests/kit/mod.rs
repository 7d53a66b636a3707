//! What the tests share: an operator in miniature, run inside of a test against the real control plane.
#![allow(dead_code)] // each test binary uses its share

pub(crate) mod bundle;
pub(crate) mod look;
pub(crate) mod shop;

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinHandle;
use windlass::{Blueprint, DigestKey, PlanController, PlanMetrics};
use windlass_runtime::cache::{Cache, WatchTiming};
use windlass_runtime::client::{Client, ClientOptions, RetryPolicy};
use windlass_runtime::events::{Recorder, RecorderOptions};
use windlass_runtime::manager::{Manager, ManagerError, Readiness, Stage, Stop, Stopper};
use windlass_runtime::metrics::Metrics;
use windlass_testenv::eventually;

/// An operator that runs as a task of this process. Dropped, it is gone at its next await, as after a crash.
pub(crate) struct Operator {
    pub(crate) readiness: Readiness,
    pub(crate) metrics: Metrics,
    stopper: Stopper,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl Operator {
    /// Starts an operator for one namespace.
    pub(crate) fn start<B: Blueprint>(config: kube::Config, namespace: &str, blueprint: B) -> Result<Self> {
        Self::with(config, namespace, PlanController::of(blueprint))
    }

    /// The same, with other than the usual options.
    pub(crate) fn with<B: Blueprint>(
        config: kube::Config,
        namespace: &str,
        unified: PlanController<B>,
    ) -> Result<Self> {
        Self::as_given(config, namespace, unified.digest_key(DigestKey::from_bytes(&[7; 32])))
    }

    /// The same, with its digest key from where the options say.
    pub(crate) fn as_given<B: Blueprint>(
        config: kube::Config,
        namespace: &str,
        unified: PlanController<B>,
    ) -> Result<Self> {
        let retry = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
        let options = ClientOptions { retry, deadline: Duration::from_secs(10), ..ClientOptions::default() };
        let client = Client::new(config, options)?;
        let timing = WatchTiming {
            backoff: (Duration::from_millis(20), Duration::from_millis(200)),
            slow_backoff: (Duration::from_millis(50), Duration::from_millis(200)),
            answer: Duration::from_secs(5),
            ..WatchTiming::default()
        };
        let cache = Cache::with_timing(&client, timing);
        let (recorder, publisher) = Recorder::new(&client, RecorderOptions::new(B::NAME))?;
        let mut manager = Manager::new();
        recorder.show_in(manager.metrics());
        let metrics = PlanMetrics::shown_in(manager.metrics());
        let controller = unified
            .in_namespaces([namespace])
            .home(namespace)
            .metrics(&metrics)
            .build(&client, &cache, &recorder)?;
        manager.cache(&cache)?;
        manager.add(Stage::Everywhere, publisher.into_part())?;
        manager.controller(controller)?;
        let (stopper, stop) = Stop::pair();
        let (readiness, metrics) = (manager.readiness().clone(), manager.metrics().clone());
        Ok(Self { readiness, metrics, stopper, task: tokio::spawn(manager.run_until(stop)) })
    }

    /// Waits until its caches have synced and its workers run.
    pub(crate) async fn ready(&self) -> Result<()> {
        eventually("the operator is ready", || async {
            let report = self.readiness.report();
            if report.is_ready() { Ok(()) } else { Err(report.to_string()) }
        })
        .await?;
        Ok(())
    }

    /// Waits until it ends by itself, which it should not.
    pub(crate) async fn run(self) -> Result<()> {
        Ok(self.task.await??)
    }

    /// Stops it in an orderly way.
    pub(crate) async fn stop(self) -> Result<()> {
        self.stopper.request();
        let mut task = self.task;
        (&mut task).await.context("the operator's task")??;
        Ok(())
    }

    /// Ends it at once, as a crash does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// The value of a metric, by the start of its line; 0 if there is none.
    pub(crate) fn metric(&self, start: &str) -> f64 {
        let text = self.metrics.encode();
        let line = text.lines().find(|line| line.starts_with(start));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or_default()
    }
}

/// One test's own corner of the control plane: a namespace, and an account for its operator.
pub(crate) struct Corner {
    pub(crate) env: windlass_testenv::TestEnv,
    pub(crate) namespace: windlass_testenv::TestNamespace,
    pub(crate) user: windlass_testenv::TestUser,
}

impl Corner {
    pub(crate) async fn new(env: windlass_testenv::TestEnv, hint: &str) -> windlass_testenv::Result<Self> {
        use kube::CustomResourceExt as _;
        env.install_crds(&[shop::Shop::crd(), bundle::Bundle::crd(), bundle::Gadget::crd()]).await?;
        let namespace = env.namespace(hint).await?;
        let user = namespace.client_for("operator", &windlass_testenv::Rules::everything()).await?;
        Ok(Self { env, namespace, user })
    }

    /// Starts an operator here.
    pub(crate) async fn operate<B: Blueprint>(&self, unified: PlanController<B>) -> Result<Operator> {
        let operator = Operator::with(self.user.config(), self.namespace.name(), unified)?;
        operator.ready().await?;
        Ok(operator)
    }

    /// The place in the audit log where it ends now.
    pub(crate) fn mark(&self) -> Result<windlass_testenv::Mark> {
        Ok(self.env.requests()?.mark()?)
    }

    /// What the operator has asked of the API server since.
    pub(crate) fn requests_since(&self, mark: windlass_testenv::Mark) -> Result<windlass_testenv::Requests> {
        Ok(self.env.requests()?.since(mark)?.by_user(self.user.name()))
    }

    /// The names and kinds of what the operator wrote since, in order: `patch deployments web-1`.
    pub(crate) fn writes_since(&self, mark: windlass_testenv::Mark) -> Result<Vec<String>> {
        let requests = self.requests_since(mark)?.writes();
        let told = |request: &windlass_testenv::audit::Request| {
            let slash = if request.subresource.is_empty() { "" } else { "/" };
            format!("{} {}{slash}{} {}", request.verb, request.resource, request.subresource, request.name)
        };
        Ok(requests.iter().filter(|request| request.resource != "events").map(told).collect())
    }

    /// Waits until a condition of an owner has this truth, and returns its reason and message.
    pub(crate) async fn until<K>(&self, name: &str, condition: &str, truth: &str) -> Result<(String, String)>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
    {
        self.until_said::<K>(name, condition, truth, "").await
    }

    /// The same, and its message contains these words.
    pub(crate) async fn until_said<K>(
        &self,
        name: &str,
        condition: &str,
        truth: &str,
        words: &str,
    ) -> Result<(String, String)>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + serde::Serialize,
    {
        let api = self.namespace.api::<K>();
        let what = format!("{} {name} is {condition}={truth} {words}", K::kind(&()));
        let found = eventually(&what, || async {
            let owner = api.get(name).await.map_err(|error| error.to_string())?;
            let owner = serde_json::to_value(owner).map_err(|error| error.to_string())?;
            let generation = owner["metadata"]["generation"].clone();
            let conditions = owner["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let text = |condition: &serde_json::Value, field: &str| {
                condition[field].as_str().unwrap_or_default().to_owned()
            };
            conditions
                .iter()
                .find(|found| {
                    found["type"] == condition
                        && found["status"] == truth
                        && found["observedGeneration"] == generation
                        && text(found, "message").contains(words)
                })
                .map(|found| (text(found, "reason"), text(found, "message")))
                .ok_or_else(|| format!("{:?}", owner["status"]))
        })
        .await?;
        Ok(found)
    }
}
