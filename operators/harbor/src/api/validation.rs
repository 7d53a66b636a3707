//! Validation of objects beyond their schemas.
//!
//! A message names the field, the value and the remedy, and all errors are reported at once. Existing objects
//! are not validated again: an update is validated only if it changes the spec, and never while the object is
//! being deleted. Errors that the stored object has too become warnings, so that an update is refused only
//! for what it changes. The rules for `v1beta1` hold for `v1alpha3` too, because the API server converts
//! objects before it calls the webhook.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windlass_operator::{BoxError, Setup};
use windlass_runtime::webhook::{Denial, Findings, Operation, Request, Validator};

use super::component::ComponentSpec;
use super::embedded::{Embed, Embedded, VolumeSource};
use super::harbor::HarborCommon;
use super::jobservice::Loggers;
use super::network::Network;
use super::observe::{JaegerMode, Trace, TraceProvider};
use super::redis::RedisHost;
use super::status::Condition;
use super::{
    ChartMuseum, Core, Exporter, Harbor, HarborCluster, JobService, NotaryServer, NotarySigner, Portal,
    Registry, RegistryController, Trivy, fields, ineffective,
};

/// Rules for versions of Harbor: which can be created, and which upgrades are allowed.
pub trait VersionRules: Send + Sync {
    /// Reports errors of a Harbor that is created, or changed from `old`.
    fn judge(&self, old: Option<&Previous<'_>>, new: &HarborCommon, found: &mut Findings);

    /// Reports settings of the Redis at `field` that a Harbor of this version does not support.
    fn check_redis(&self, _version: &str, _field: &str, _redis: &RedisHost, _found: &mut Findings) {}

    /// Reports settings that a Harbor of this version does not have.
    fn check_features(&self, _spec: &HarborCommon, _found: &mut Findings) {}

    /// Reports a change from `old` to `new` that the built-in database of a HarborCluster cannot follow.
    fn judge_built_in_database(&self, _old: &str, _new: &str, _found: &mut Findings) {}
}

/// The stored object that an update changes.
#[derive(Clone, Copy, Debug)]
pub struct Previous<'a> {
    /// Common part of the stored spec, before the update.
    pub common: &'a HarborCommon,
    /// The version at which the Harbor was last ready (`status.version`), and which its data therefore has.
    /// `None` if it was never ready, or if the upstream operator wrote the status.
    pub ready_at: Option<&'a str>,
    /// True if this operator has never seen the Harbor ready. False if the upstream operator wrote the
    /// status: then the data has the version of the stored spec.
    pub never_ready: bool,
}

impl<'a> Previous<'a> {
    pub(super) fn of(
        common: &'a HarborCommon,
        status: Option<(&'a Map<String, Value>, &[Condition])>,
    ) -> Self {
        let Some((fields, conditions)) = status else {
            return Self { common, ready_at: None, never_ready: true };
        };
        let ready_at = fields.get("version").and_then(Value::as_str);
        // The upstream operator has no condition Ready.
        let is_ours = conditions.iter().any(|condition| condition.kind == "Ready");
        Self { common, ready_at, never_ready: is_ours && ready_at.is_none() }
    }
}

/// Kind that can be validated.
pub trait Judged: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + Sync + 'static {
    /// Returns true if both objects have the same spec.
    fn same(&self, old: &Self) -> bool;

    /// Reports the errors that depend on this object alone.
    fn check(&self, versions: &dyn VersionRules, found: &mut Findings);

    /// Reports a creation or a change that is not allowed; `old` is the stored object on an update.
    fn check_change(&self, _old: Option<&Self>, _versions: &dyn VersionRules, _found: &mut Findings) {}

    /// Reports the errors of the object; `old` is the stored object on an update. Errors of `old` itself are
    /// reported as warnings.
    fn judge(&self, old: Option<&Self>, versions: &dyn VersionRules, found: &mut Findings) {
        let spec = errors(self, versions, found);
        if let Some(old) = old {
            let mut stored = Findings::default();
            errors(old, versions, &mut stored);
            found.ratchet(&stored);
        }
        self.check_change(old, versions, found);
        if let Some(spec) = spec {
            ineffective::check(&Self::kind(&()), &spec, found);
        }
    }
}

/// Reports the errors of an object, and returns its spec. What this operator writes itself for another object
/// is not checked by fields: a user cannot correct it there, and the other object has been checked.
fn errors<K: Judged>(object: &K, versions: &dyn VersionRules, found: &mut Findings) -> Option<Value> {
    object.check(versions, found);
    if is_child(object.meta()) {
        return None;
    }
    let mut raw = serde_json::to_value(object).ok()?;
    let spec = raw.get_mut("spec")?.take();
    fields::check("spec", &spec, found);
    Some(spec)
}

/// Returns true if a Harbor or a HarborCluster controls the object.
fn is_child(metadata: &ObjectMeta) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && owner.api_version.starts_with("goharbor.io/"))
}

/// Validator of a kind.
#[derive(Debug)]
pub struct Rules<K, V> {
    versions: V,
    /// Validate objects; if false, every object is accepted.
    judges: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K: Judged, V: VersionRules + 'static> Validator for Rules<K, V> {
    type Object = K;

    async fn validate(&self, request: &Request<K>, found: &mut Findings) -> Result<(), Denial> {
        match &request.operation {
            _ if !self.judges => {}
            Operation::Create { new } => new.judge(None, &self.versions, found),
            Operation::Update { old, new } if new.meta().deletion_timestamp.is_none() && !new.same(old) => {
                new.judge(Some(old), &self.versions, found);
            }
            Operation::Update { .. } | Operation::Delete { .. } => {}
        }
        Ok(())
    }
}

/// Registers the validators of all kinds. Kinds whose controller is in `unjudged` accept every object: the
/// API server calls the webhook nevertheless, and would reject the object if nothing answered.
pub fn validators<V: VersionRules + Clone + 'static>(
    setup: &mut Setup<'_>,
    versions: &V,
    unjudged: &BTreeSet<String>,
) -> Result<(), BoxError> {
    let all: [(&str, Add<V>); 12] = [
        ("chartmuseum", validator::<ChartMuseum, V>),
        ("core", validator::<Core, V>),
        ("exporter", validator::<Exporter, V>),
        ("harbor", validator::<Harbor, V>),
        ("harborcluster", validator::<HarborCluster, V>),
        ("jobservice", validator::<JobService, V>),
        ("notaryserver", validator::<NotaryServer, V>),
        ("notarysigner", validator::<NotarySigner, V>),
        ("portal", validator::<Portal, V>),
        ("registry", validator::<Registry, V>),
        ("registryctl", validator::<RegistryController, V>),
        ("trivy", validator::<Trivy, V>),
    ];
    for (word, add) in all {
        add(setup, versions, !unjudged.contains(word))?;
    }
    Ok(())
}

type Add<V> = fn(&mut Setup<'_>, &V, bool) -> Result<(), BoxError>;

fn validator<K: Judged, V: VersionRules + Clone + 'static>(
    setup: &mut Setup<'_>,
    versions: &V,
    judges: bool,
) -> Result<(), BoxError> {
    setup.validator(Rules::<K, V> { versions: versions.clone(), judges, kind: PhantomData })?;
    Ok(())
}

macro_rules! judged {
    ($kind:ty, |$spec:ident, $found:ident| $judge:expr) => {
        impl Judged for $kind {
            fn same(&self, old: &Self) -> bool {
                self.spec == old.spec
            }

            fn check(&self, _: &dyn VersionRules, $found: &mut Findings) {
                let $spec = &self.spec;
                component("spec", &$spec.component, $found);
                network($spec.network.as_ref(), $found);
                $judge
            }
        }
    };
}

judged!(Core, |spec, found| trace(spec.trace.as_ref(), found));
judged!(Portal, |_spec, _found| ());
judged!(Exporter, |_spec, _found| ());
judged!(RegistryController, |_spec, _found| ());
judged!(NotaryServer, |_spec, _found| ());
judged!(NotarySigner, |_spec, _found| ());
judged!(JobService, |spec, found| {
    trace(spec.trace.as_ref(), found);
    loggers("spec.jobLoggers", &spec.job_loggers, found);
    loggers("spec.loggers", &spec.loggers, found);
    if let Some(storage) = &spec.storage {
        volume("spec.storage.scanDataExports.volumeSource", &storage.scan_data_exports.volume_source, found);
    }
});
judged!(Registry, |spec, found| {
    trace(spec.trace.as_ref(), found);
    let names = spec.storage.driver.names();
    if names.len() != 1 {
        let remedy = "set exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory";
        found.invalid("spec.storage.driver", names, remedy);
    }
    if let Some(files) = &spec.storage.driver.filesystem {
        volume("spec.storage.driver.filesystem.volumeSource", &files.volume_source, found);
    }
});
judged!(ChartMuseum, |spec, found| {
    if let Some(files) = &spec.chart.storage.filesystem {
        volume("spec.chart.storage.filesystem.volumeSource", &files.volume_source, found);
    }
});
judged!(Trivy, |spec, found| {
    if let Err(error) = spec.timeout.get() {
        found.invalid("spec.timeout", &spec.timeout, error);
    }
    volume("spec.storage.cache.volumeSource", &spec.storage.cache.volume_source, found);
    volume("spec.storage.reports.volumeSource", &spec.storage.reports.volume_source, found);
});

/// Reports embedded Kubernetes values that do not fit their types.
pub(super) fn component(path: &str, spec: &ComponentSpec, found: &mut Findings) {
    all(path, "tolerations", &spec.tolerations, found);
    all(path, "resources", spec.resources.as_slice(), found);
    all(path, "affinity", spec.affinity.as_slice(), found);
    all(path, "topologySpreadConstraints", &spec.topology_spread_constraints, found);
    all(path, "extraEnv", &spec.extra_env, found);
    all(path, "extraVolumes", &spec.extra_volumes, found);
    all(path, "extraVolumeMounts", &spec.extra_volume_mounts, found);
}

fn all<T: Embed + DeserializeOwned>(path: &str, field: &str, values: &[Embedded<T>], found: &mut Findings) {
    for value in values {
        if let Err(error) = value.typed() {
            found.invalid(format!("{path}.{field}"), value, error);
        }
    }
}

fn volume(path: &str, source: &Embedded<VolumeSource>, found: &mut Findings) {
    if let Err(error) = source.volume("volume") {
        found.invalid(path, source, error);
    }
}

pub(super) fn network(network: Option<&Network>, found: &mut Findings) {
    for (index, family) in network.iter().flat_map(|network| &network.ip_families).enumerate() {
        if !Network::FAMILIES.contains(&family.as_str()) {
            found.invalid(format!("spec.network.ipFamilies[{index}]"), family, "write IPv4 or IPv6");
        }
    }
}

pub(super) fn trace(trace: Option<&Trace>, found: &mut Findings) {
    let Some(trace) = trace.filter(|trace| trace.enabled) else { return };
    match (trace.provider, &trace.jaeger, &trace.otel) {
        (TraceProvider::Jaeger, None, _) => {
            found.required(
                "spec.trace.jaeger",
                "trace.provider is jaeger: set its address, or set trace.enabled to false",
            );
        }
        (TraceProvider::Otel, _, None) => {
            found.required(
                "spec.trace.otel",
                "trace.provider is otel: set its address, or set trace.enabled to false",
            );
        }
        (TraceProvider::Jaeger, Some(jaeger), _) => match jaeger.mode {
            JaegerMode::Collector if jaeger.collector.is_none() => {
                found.required(
                    "spec.trace.jaeger.collector",
                    "jaeger.mode is collector: set its address, or use mode agent",
                );
            }
            JaegerMode::Agent if jaeger.agent.is_none() => {
                found.required(
                    "spec.trace.jaeger.agent",
                    "jaeger.mode is agent: set its address, or use mode collector",
                );
            }
            _ => {}
        },
        (TraceProvider::Otel, _, Some(otel)) => {
            if let Err(error) = otel.timeout.get() {
                found.invalid("spec.trace.otel.timeout", &otel.timeout, error);
            }
        }
    }
}

fn loggers(path: &str, loggers: &Loggers, found: &mut Findings) {
    if loggers.is_empty() {
        found.required(path, "set at least one of files, database, stdout");
    }
    for (index, file) in loggers.files().iter().enumerate() {
        if let Some(source) = &file.volume {
            volume(&format!("{path}.files[{index}].volume"), source, found);
        }
    }
}
