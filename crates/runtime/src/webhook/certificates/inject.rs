//! Injection of the CA bundle into webhook configurations.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::keyring::{Keyring, KeyringError};
use super::secret::{Certificates, MANAGER, RETRY, content};
use crate::cache::{Cache, Full, Reader, Selection, Shape, SyncState};
use crate::client::{Client, ClientError, Patch};
use crate::key::ObjectKey;
use crate::manager::{Context, Runnable};
use crate::meta::Meta;
use crate::resource::ResourceType;

/// A configuration that makes the API server call our webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    kind: TargetKind,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetKind {
    Validating,
    Mutating,
    Definition,
}

impl Target {
    /// Selects all webhooks of this ValidatingWebhookConfiguration.
    pub fn validating(name: impl Into<String>) -> Self {
        Self { kind: TargetKind::Validating, name: name.into() }
    }

    /// Selects all webhooks of this MutatingWebhookConfiguration.
    pub fn mutating(name: impl Into<String>) -> Self {
        Self { kind: TargetKind::Mutating, name: name.into() }
    }

    /// Selects the conversion webhook of this CustomResourceDefinition.
    pub fn definition(name: impl Into<String>) -> Self {
        Self { kind: TargetKind::Definition, name: name.into() }
    }

    /// The name of the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of the configuration.
    pub fn resource(&self) -> ResourceType {
        match self.kind {
            TargetKind::Validating => ResourceType::of::<ValidatingWebhookConfiguration>(),
            TargetKind::Mutating => ResourceType::of::<MutatingWebhookConfiguration>(),
            TargetKind::Definition => ResourceType::of::<CustomResourceDefinition>(),
        }
    }
}

/// The fields that the injector reads of any of the three kinds.
#[derive(Debug, Deserialize)]
struct Configuration {
    metadata: Meta,
    #[serde(default)]
    webhooks: Vec<Webhook>,
    #[serde(default)]
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    client_config: ClientConfig,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    conversion: Option<Conversion>,
}

#[derive(Debug, Deserialize)]
struct Conversion {
    #[serde(default)]
    webhook: Option<ConversionWebhook>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionWebhook {
    #[serde(default)]
    client_config: Option<ClientConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientConfig {
    #[serde(default)]
    ca_bundle: Option<String>,
}

impl Shape for Configuration {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Configuration {
    /// Returns the JSON patch that sets this bundle (in base64) where it differs; empty if nothing differs.
    ///
    /// Each index is tested first: a patch made for another list of webhooks changes nothing.
    fn patch(&self, bundle: &str) -> Vec<Value> {
        let differs = |config: &ClientConfig| config.ca_bundle.as_deref() != Some(bundle);
        let mut operations = Vec::new();
        for (index, webhook) in self.webhooks.iter().enumerate() {
            if differs(&webhook.client_config) {
                let place = format!("/webhooks/{index}");
                operations
                    .push(json!({"op": "test", "path": format!("{place}/name"), "value": webhook.name}));
                operations.push(
                    json!({"op": "add", "path": format!("{place}/clientConfig/caBundle"), "value": bundle}),
                );
            }
        }
        let conversion = self.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
        if let Some(config) = conversion.and_then(|webhook| webhook.client_config.as_ref())
            && differs(config)
        {
            let path = "/spec/conversion/webhook/clientConfig/caBundle";
            operations.push(json!({"op": "add", "path": path, "value": bundle}));
        }
        operations
    }
}

/// Writes the CA bundle into the configurations, keeps it there, and records when all have it.
///
/// Runs on the leader only: replicas that follow the Secret at their own pace would undo each other's
/// writes. A configuration that does not exist yet gets the bundle when it appears; one that is already
/// right costs no write.
#[must_use = "add it to a manager"]
pub struct Injector {
    certificates: Certificates,
    targets: Vec<Target>,
}

impl fmt::Debug for Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("targets", &self.targets).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
enum InjectError {
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("{0} is not readable: {1}")]
    Blocked(String, String),
    #[error("the Secret cannot be used: {0}")]
    Keyring(#[from] KeyringError),
}

impl Certificates {
    /// Returns the injector of these certificates; for the leader only.
    pub fn injector(&self, targets: impl IntoIterator<Item = Target>) -> Injector {
        Injector::new(self.clone(), targets)
    }
}

impl Injector {
    pub(super) fn new(certificates: Certificates, targets: impl IntoIterator<Item = Target>) -> Self {
        Self { certificates, targets: targets.into_iter().collect() }
    }

    /// Returns the runnable `webhook authorities`, for
    /// [`Stage::Controllers`](crate::manager::Stage::Controllers).
    pub fn into_runnable(self) -> Runnable {
        let injector = Arc::new(self);
        Runnable::new("webhook authorities", move |context: Context| {
            let injector = Arc::clone(&injector);
            async move {
                injector.keep(&context).await;
                Ok::<_, std::convert::Infallible>(())
            }
        })
    }

    async fn keep(&self, context: &Context) {
        let client = &self.certificates.inner.client;
        let cache = Cache::new(client);
        let changed = Arc::new(Notify::new());
        let secret = self.certificates.reader(&cache);
        let mut subscriptions = vec![secret.subscribe(waker(&changed))];
        let targets: Vec<_> =
            self.targets.iter().map(|target| (target, target_reader(&cache, target))).collect();
        subscriptions.extend(targets.iter().map(|(_, reader)| reader.subscribe(waker(&changed))));
        cache.start();
        context.ready();
        // The cache of a definition or configuration that does not exist is synced too, and empty.
        let all_synced = async {
            secret.synced().await;
            for (_, reader) in &targets {
                reader.synced().await;
            }
        };
        let mut all_synced = Box::pin(all_synced);
        let mut synced = false;
        let mut failures = 0;
        loop {
            let inject = inject(client, &self.certificates, &secret, &targets);
            let delay = match inject.await {
                Ok(()) => {
                    failures = 0;
                    None
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, failures, "CA bundle could not be written to all webhook configurations");
                    Some(RETRY.delay(failures, u64::from(std::process::id()) << 40))
                }
            };
            let retry = async {
                match delay {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = context.stop.requested() => return,
                () = changed.notified() => {}
                () = &mut all_synced, if !synced => synced = true,
                () = retry => {}
            }
        }
    }
}

fn waker<S>(changed: &Arc<Notify>) -> impl Fn(&crate::cache::Change<S>) + Send + Sync + 'static {
    let changed = Arc::clone(changed);
    move |_| changed.notify_one()
}

fn target_reader(cache: &Cache, target: &Target) -> Reader<Configuration> {
    let named = Selection::all().fields(&format!("metadata.name={}", target.name));
    // A name is always a valid selector; otherwise all objects of the kind would be watched.
    cache.reader_of(&target.resource(), &named.unwrap_or_default())
}

/// Writes what differs, and then, once all configurations are right, records that.
async fn inject(
    client: &Client,
    certificates: &Certificates,
    secret: &Reader<Full<Secret>>,
    targets: &[(&Target, Reader<Configuration>)],
) -> Result<(), InjectError> {
    // The serving replica creates the Secret; until then there is nothing to inject.
    let Some(secret) = secret.get(&certificates.inner.secret) else { return Ok(()) };
    let mut keyring = Keyring::read(&content(&secret))?;
    let bundle = json!(ByteString(keyring.bundle().into_bytes()));
    let bundle = bundle.as_str().unwrap_or_default();
    let mut known = true;
    for (target, reader) in targets {
        match &*reader.state().borrow() {
            SyncState::Synced => {}
            SyncState::Starting => known = false,
            SyncState::Blocked(problem) => {
                return Err(InjectError::Blocked(target.resource().group_resource(), problem.to_string()));
            }
        }
        let key = ObjectKey::cluster(target.name.as_str());
        let Some(present) = reader.get(&key) else { continue };
        let patch = present.patch(bundle);
        if !patch.is_empty() {
            let objects = client.objects_of::<Value>(target.resource());
            objects.patch(&key, &Patch::Json(patch.into()), MANAGER).await?;
            tracing::info!(target = %target.name, "CA bundle written to webhook configuration");
        }
    }
    if known && keyring.announce((certificates.inner.clock)()) {
        match certificates.update(&secret, &keyring).await {
            // The configuration changed meanwhile, and the cache is about to deliver the change.
            Err(error) if error.is_conflict() => {}
            result => result?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(value: Value) -> Configuration {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn only_bundles_that_differ_are_written_each_guarded_by_its_name() {
        let present = configuration(json!({"metadata": {"name": "c"}, "webhooks": [
            {"name": "a.b.c", "clientConfig": {"caBundle": "bmV3"}},
            {"name": "d.e.f", "clientConfig": {"caBundle": "b2xk"}},
            {"name": "g.h.i", "clientConfig": {}},
        ]}));
        assert_eq!(
            present.patch("bmV3"),
            [
                json!({"op": "test", "path": "/webhooks/1/name", "value": "d.e.f"}),
                json!({"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "bmV3"}),
                json!({"op": "test", "path": "/webhooks/2/name", "value": "g.h.i"}),
                json!({"op": "add", "path": "/webhooks/2/clientConfig/caBundle", "value": "bmV3"}),
            ]
        );
    }

    #[test]
    fn a_definition_is_written_only_where_it_has_a_conversion_webhook() {
        let definition = |conversion: Value| {
            configuration(json!({"metadata": {"name": "d"}, "spec": {"conversion": conversion}}))
                .patch("bmV3")
        };
        assert!(definition(json!({"strategy": "None"})).is_empty());
        assert!(definition(json!({"webhook": {"clientConfig": {"caBundle": "bmV3"}}})).is_empty());
        assert_eq!(
            definition(json!({"webhook": {"clientConfig": {"url": "https://a"}}})),
            [json!({"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": "bmV3"})]
        );
    }
}
