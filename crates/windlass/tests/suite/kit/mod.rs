//! Parts that the tests share: a small operator that runs inside of a test against a real control plane.
#![allow(dead_code)] // each test binary uses its share

pub(crate) mod bundle;
pub(crate) mod cell;
pub(crate) mod look;
pub(crate) mod shop;

use std::ops::Deref;
use std::time::Duration;

use anyhow::Result;
use windlass::{Blueprint, Controls, DigestKey, PlanController, PlanMetrics};
use windlass_runtime::cache::{Cache, WatchTiming};
use windlass_runtime::client::{Client, ClientOptions, RetryPolicy};
use windlass_runtime::events::{Recorder, RecorderOptions};
use windlass_runtime::manager::{Manager, Stage, Stop};
use windlass_testenv::world::{Namespaced, Running, World};
use windlass_testenv::{Mark, Requests, Rules, TestEnv};

/// An operator that runs as a task of this process. When it is dropped, it ends at its next await, as after a
/// crash.
pub(crate) struct Operator(Running);

impl Deref for Operator {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

impl Operator {
    /// Starts an operator for one namespace.
    pub(crate) fn start<B: Blueprint>(config: kube::Config, namespace: &str, blueprint: B) -> Result<Self> {
        Self::with(config, namespace, PlanController::of(blueprint))
    }

    /// Starts an operator with other options.
    pub(crate) fn with<B: Controls>(
        config: kube::Config,
        namespace: &str,
        controller: PlanController<B>,
    ) -> Result<Self> {
        Self::as_given(config, namespace, controller.digest_key(DigestKey::from_bytes(&[7; 32])))
    }

    /// Starts an operator with the digest key that the options define.
    pub(crate) fn as_given<B: Controls>(
        config: kube::Config,
        namespace: &str,
        controller: PlanController<B>,
    ) -> Result<Self> {
        Self::over(config, &[namespace], controller)
    }

    /// Starts an operator for several namespaces; the first is its own.
    pub(crate) fn over<B: Controls>(
        config: kube::Config,
        namespaces: &[&str],
        controller: PlanController<B>,
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
        let controller = controller
            .in_namespaces(namespaces.iter().copied())
            .operator_namespace(namespaces.first().copied().unwrap_or_default())
            .metrics(&metrics)
            .build(&client, &cache, &recorder)?;
        manager.cache(&cache)?;
        manager.add(Stage::Everywhere, publisher.into_runnable())?;
        manager.controller(controller)?;
        let (stopper, stop) = Stop::pair();
        let (readiness, metrics) = (manager.readiness().clone(), manager.metrics().clone());
        let report = move || {
            let report = readiness.report();
            (report.is_ready(), report.to_string())
        };
        let running = manager.run_until(stop);
        Ok(Self(Running::new(report, move || metrics.encode(), move || stopper.request(), running)))
    }

    /// Waits until the operator ends by itself, which it should not.
    pub(crate) async fn run(self) -> Result<()> {
        Ok(self.0.run().await?)
    }

    /// Stops the operator in an orderly way.
    pub(crate) async fn stop(self) -> Result<()> {
        Ok(self.0.stop().await?)
    }

    /// Ends the operator at once, as a crash does.
    pub(crate) async fn kill(self) {
        self.0.kill().await;
    }

    /// Returns the value of a metric, by the start of its line; 0 if there is none.
    pub(crate) fn metric(&self, start: &str) -> f64 {
        self.metric_value(start).unwrap_or_default()
    }
}

/// A test's part of the control plane: a namespace, and an account for its operator.
pub(crate) struct Corner(World);

impl Deref for Corner {
    type Target = World;

    fn deref(&self) -> &World {
        &self.0
    }
}

impl Corner {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> windlass_testenv::Result<Self> {
        use kube::CustomResourceExt as _;
        let kinds = [shop::Shop::crd(), bundle::Bundle::crd(), bundle::Gadget::crd(), cell::Cell::crd()];
        env.install_crds(&kinds).await?;
        let namespace = env.namespace(hint).await?;
        Ok(Self(World::in_namespace(namespace, "operator", &Rules::everything()).await?))
    }

    /// Starts an operator here.
    pub(crate) async fn operate<B: Controls>(&self, controller: PlanController<B>) -> Result<Operator> {
        let operator = Operator::with(self.user.config(), self.namespace.name(), controller)?;
        operator.ready().await?;
        Ok(operator)
    }

    /// Returns the requests of the operator since the mark.
    pub(crate) fn requests_since(&self, mark: Mark) -> Result<Requests> {
        Ok(self.requests(mark)?)
    }

    /// Returns the operator's writes since the mark, in order: `patch deployments web-1`.
    pub(crate) fn writes_since(&self, mark: Mark) -> Result<Vec<String>> {
        Ok(self.writes(mark)?)
    }

    /// Waits until a condition of an owner has this status, and returns its reason and message.
    pub(crate) async fn until<K: Namespaced>(
        &self,
        name: &str,
        condition: &str,
        truth: &str,
    ) -> Result<(String, String)> {
        self.until_message::<K>(name, condition, truth, "").await
    }

    /// Waits until a condition of an owner has this status and its message contains this text.
    pub(crate) async fn until_message<K: Namespaced>(
        &self,
        name: &str,
        condition: &str,
        truth: &str,
        words: &str,
    ) -> Result<(String, String)> {
        Ok(self.condition::<K>(name, condition, truth, words).await?)
    }
}
