//! Certificates of our own, in a Secret that all replicas share.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use windlass_pki::rotation::Policy;

use super::keyring::{Content, Keyring, KeyringError};
use super::serving::{BadPair, Serving};
use crate::cache::{Cache, Full, Reader, Selection};
use crate::client::{Client, ClientError, Patch};
use crate::key::ObjectKey;
use crate::manager::{Context, Part};
use crate::queue::Backoff;

/// Who writes, for `managedFields`.
pub(super) const MANAGER: &str = "windlass-webhook-certificates";

/// How failures are repeated.
pub(super) const RETRY: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_mins(1), jitter: 0.2 };

/// How often another replica may be faster before it is called a failure.
const RACES: usize = 10;

/// The longest sleep: a clock that was set is noticed within it. Costs no request.
const NAP: Duration = Duration::from_mins(10);

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// The Secret cannot be read or written.
    #[error("the webhooks' certificates cannot be kept: {0}")]
    Client(Box<ClientError>),
    /// The Secret holds what cannot be used.
    #[error("Secret {secret} cannot be used for the webhooks' certificates: {error}")]
    Content {
        /// Which.
        secret: ObjectKey,
        /// Why.
        #[source]
        error: KeyringError,
    },
    /// The serving certificate in the Secret cannot be served.
    #[error(
        "the certificate in Secret {secret} cannot be served: {error}; delete the Secret, and it is made anew"
    )]
    Pair {
        /// Which.
        secret: ObjectKey,
        /// Why.
        #[source]
        error: BadPair,
    },
    /// Others changed the Secret again and again.
    #[error("Secret {0} changes too often to be written; do two operators use it?")]
    Contended(ObjectKey),
}

impl From<ClientError> for CertificatesError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Certificates of our own, in a Secret that all replicas share. Clones are the same.
///
/// The Secret is created by whoever comes first and changed by whoever finds something due; each write fails if another
/// replica was faster, and then its result is used. Deleted, it is written again with what is still in memory, so
/// that nobody loses trust.
#[derive(Clone)]
pub struct Certificates {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) client: Client,
    pub(super) secret: ObjectKey,
    names: BTreeSet<String>,
    policy: Policy,
    pub(super) clock: Clock,
    serving: Serving,
    /// What was last seen or written.
    known: Mutex<Option<Keyring>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("secret", &self.inner.secret)
            .field("names", &self.inner.names)
            .finish_non_exhaustive()
    }
}

impl Certificates {
    /// Certificates for a server that is called by these names: `<service>.<namespace>.svc`, or an IP address.
    pub fn in_secret(
        client: &Client,
        secret: ObjectKey,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let inner = Inner {
            client: client.clone(),
            secret,
            names: names.into_iter().map(Into::into).collect(),
            policy: Policy::default(),
            clock: Arc::new(Timestamp::now),
            serving: Serving::new(),
            known: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// With other lifetimes. Said before anything is made of these certificates.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|inner| inner.policy = policy)
    }

    /// With another clock: for tests. Said before anything is made of these certificates.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.clock = Arc::new(clock))
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let Inner { client, secret, names, policy, clock, .. } = &*self.inner;
        let mut inner = Inner {
            client: client.clone(),
            secret: secret.clone(),
            names: names.clone(),
            policy: *policy,
            clock: Arc::clone(clock),
            serving: Serving::new(),
            known: Mutex::new(None),
        };
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// The certificate to serve, as it is now and will be.
    pub fn serving(&self) -> &Serving {
        &self.inner.serving
    }

    /// The part `webhook certificates`, for [`Stage::Webhooks`](crate::manager::Stage::Webhooks) on every replica: up when
    /// there is a certificate.
    pub fn part(&self) -> Part {
        let certificates = self.clone();
        Part::new("webhook certificates", move |context: Context| {
            let certificates = certificates.clone();
            async move {
                certificates.keep(&context).await;
                Ok::<_, CertificatesError>(())
            }
        })
    }

    /// A reader of the Secret in a cache of its own: webhooks start before the process's caches do.
    pub(super) fn reader(&self, cache: &Cache) -> Reader<Full<Secret>> {
        let Inner { secret, .. } = &*self.inner;
        let selection = Selection::all().in_namespace(secret.namespace().unwrap_or_default());
        let named = selection.clone().fields(&format!("metadata.name={}", secret.name()));
        // A name is always a valid selector; were it not, the whole namespace would do as well.
        cache.reader(&named.unwrap_or(selection))
    }

    /// Tends the Secret and serves what it holds, until a stop.
    async fn keep(&self, context: &Context) {
        let cache = Cache::new(&self.inner.client);
        let reader = self.reader(&cache);
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let _subscription = reader.subscribe(move |_| wake.notify_one());
        cache.start();
        let mut failures = 0;
        loop {
            let nap = match self.look(&reader).await {
                Ok(until) => {
                    failures = 0;
                    context.ready();
                    let left = until.duration_since((self.inner.clock)());
                    Duration::try_from(left).unwrap_or_default().min(NAP)
                }
                Err(error) => {
                    failures += 1;
                    tracing::error!(%error, failures, "the webhooks' certificates are not in order");
                    RETRY.delay(failures, u64::from(std::process::id()) << 40)
                }
            };
            tokio::select! {
                biased;
                () = context.stop.requested() => return,
                () = changed.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
    }

    /// Looks at the cached Secret, and at the live one only where something is to be done; when to look again.
    async fn look(&self, reader: &Reader<Full<Secret>>) -> Result<Timestamp, CertificatesError> {
        if let Some(cached) = reader.get(&self.inner.secret)
            && let Ok(mut keyring) = Keyring::read(&content(&cached))
        {
            let now = (self.inner.clock)();
            let tended = keyring.tend(now, &self.inner.names, &self.inner.policy);
            if let (until, false) = tended.map_err(|error| self.unusable(error))? {
                self.serve(keyring)?;
                return Ok(until);
            }
        }
        self.ensure().await
    }

    /// Brings the live Secret into order and serves what it holds; when to look again.
    async fn ensure(&self) -> Result<Timestamp, CertificatesError> {
        let Inner { client, secret, names, policy, clock, .. } = &*self.inner;
        let secrets = client.objects::<Secret>();
        for _ in 0..RACES {
            let live = secrets.find(secret).await?;
            let mut keyring = match &live {
                Some(live) => Keyring::read(live.data.as_ref().unwrap_or(&Content::new())),
                None => Ok(self.inner.known.lock().clone().unwrap_or_default()),
            }
            .map_err(|error| self.unusable(error))?;
            let (until, changed) =
                keyring.tend(clock(), names, policy).map_err(|error| self.unusable(error))?;
            let written = match &live {
                Some(_) if !changed => Ok(()),
                Some(live) => self.update(live, &keyring).await,
                None => {
                    let new = json!({
                        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                        "metadata": {"name": secret.name(), "namespace": secret.namespace()},
                        "data": keyring.write(),
                    });
                    secrets.create(secret, &new).await.map(drop)
                }
            };
            match written {
                Ok(()) => {
                    self.serve(keyring)?;
                    return Ok(until);
                }
                // Another replica was faster: use what it made.
                Err(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CertificatesError::Contended(secret.clone()))
    }

    /// Writes a keyring, unless the Secret has changed since it was read.
    pub(super) async fn update(&self, read: &Secret, keyring: &Keyring) -> Result<(), ClientError> {
        let Inner { client, secret, .. } = &*self.inner;
        let version = &read.metadata.resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "data": keyring.write()});
        client.objects::<Secret>().patch(secret, &Patch::Merge(patch), MANAGER).await.map(drop)
    }

    fn serve(&self, keyring: Keyring) -> Result<(), CertificatesError> {
        let Inner { serving, secret, known, .. } = &*self.inner;
        if let Some((certificate, key)) = keyring.serving() {
            let replaced = serving.replace(certificate, key);
            if replaced.map_err(|error| CertificatesError::Pair { secret: secret.clone(), error })? {
                tracing::info!(%secret, "the webhooks have a new serving certificate");
            }
        }
        *known.lock() = Some(keyring);
        Ok(())
    }

    fn unusable(&self, error: KeyringError) -> CertificatesError {
        CertificatesError::Content { secret: self.inner.secret.clone(), error }
    }
}

pub(super) fn content(secret: &Secret) -> Content {
    secret.data.clone().unwrap_or_default()
}
