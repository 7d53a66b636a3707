//! Our own certificates, in a Secret that all replicas share.

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
use crate::manager::{Context, Runnable};
use crate::queue::Backoff;

/// The field manager of the writes.
pub(super) const MANAGER: &str = "windlass-webhook-certificates";

/// The backoff after failures.
pub(super) const RETRY: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_mins(1), jitter: 0.2 };

/// The number of lost races against other replicas before the update fails.
const RACES: usize = 10;

/// The longest sleep, so that a changed clock is noticed. It costs no request.
const NAP: Duration = Duration::from_mins(10);

/// The source of the present time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The reason why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// The Secret cannot be read or written.
    #[error("the serving certificates cannot be read or written: {0}")]
    Client(Box<ClientError>),
    /// The content of the Secret cannot be used.
    #[error("Secret {secret} cannot be used for serving certificates: {error}")]
    Content {
        /// The key of the Secret.
        secret: ObjectKey,
        /// The reason why the content cannot be used.
        #[source]
        error: KeyringError,
    },
    /// The serving certificate in the Secret cannot be served.
    #[error(
        "the certificate in Secret {secret} cannot be served: {error}; delete the Secret, and it will be recreated"
    )]
    Pair {
        /// The key of the Secret.
        secret: ObjectKey,
        /// The reason why the certificate cannot be served.
        #[source]
        error: BadPair,
    },
    /// Other replicas changed the Secret again and again.
    #[error("Secret {0} changes too often to be written; do two operators use it?")]
    Contended(ObjectKey),
}

impl From<ClientError> for CertificatesError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Our own certificates, in a Secret that all replicas share. Clones are the same.
///
/// The first replica creates the Secret, and any replica may change it when something is due; each write
/// fails if another replica was faster, and then its result is used. If the Secret is deleted, it is written
/// again with the content in memory, so that trust is not lost.
#[derive(Clone)]
pub struct Certificates {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) client: Client,
    pub(super) secret: ObjectKey,
    names: BTreeSet<String>,
    /// The common name of our CAs, before a digest.
    authority: &'static str,
    policy: Policy,
    pub(super) clock: Clock,
    serving: Serving,
    /// The keyring as it was last read or written.
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
    /// Creates certificates for a server with these names: `<service>.<namespace>.svc`, or an IP address.
    pub fn in_secret(
        client: &Client,
        secret: ObjectKey,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let inner = Inner {
            client: client.clone(),
            secret,
            names: names.into_iter().map(Into::into).collect(),
            authority: "windlass webhooks",
            policy: Policy::default(),
            clock: Arc::new(Timestamp::now),
            serving: Serving::new(),
            known: Mutex::new(None),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sets the lifetimes. Must be called before the certificates are used.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|inner| inner.policy = policy)
    }

    /// Sets the clock, for tests. Must be called before the certificates are used.
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.clock = Arc::new(clock))
    }

    /// Makes these the certificates of metrics. They need no [injector](Self::injector): clients read the CAs
    /// from `ca.crt` of the Secret, and have half of the renewal time (three months) to read a new one. Must
    /// be called before the certificates are used.
    #[must_use]
    pub fn for_metrics(self) -> Self {
        self.with(|inner| inner.authority = "windlass metrics")
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let Inner { client, secret, names, authority, policy, clock, .. } = &*self.inner;
        let mut inner = Inner {
            client: client.clone(),
            secret: secret.clone(),
            names: names.clone(),
            authority,
            policy: *policy,
            clock: Arc::clone(clock),
            serving: Serving::new(),
            known: Mutex::new(None),
        };
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// The certificate to serve; it is updated when the Secret changes.
    pub fn serving(&self) -> &Serving {
        &self.inner.serving
    }

    /// Returns the runnable `webhook certificates`, for [`Stage::Webhooks`](crate::manager::Stage::Webhooks)
    /// on every replica: up when there is a certificate.
    pub fn runnable(&self) -> Runnable {
        let certificates = self.clone();
        Runnable::new("webhook certificates", move |context: Context| {
            let certificates = certificates.clone();
            async move {
                certificates.keep(&context).await;
                Ok::<_, CertificatesError>(())
            }
        })
    }

    /// Returns the runnable `metrics certificates`, for [`Stage::Webhooks`](crate::manager::Stage::Webhooks)
    /// on every replica: up at once, because nothing else waits for metrics.
    pub fn background_runnable(&self) -> Runnable {
        let certificates = self.clone();
        Runnable::new("metrics certificates", move |context: Context| {
            let certificates = certificates.clone();
            async move {
                context.ready();
                certificates.keep(&context).await;
                Ok::<_, CertificatesError>(())
            }
        })
    }

    /// Returns a reader of the Secret in a cache of its own: webhooks start before the process's caches.
    pub(super) fn reader(&self, cache: &Cache) -> Reader<Full<Secret>> {
        let Inner { secret, .. } = &*self.inner;
        let selection = Selection::all().in_namespace(secret.namespace().unwrap_or_default());
        let named = selection.clone().fields(&format!("metadata.name={}", secret.name()));
        // A name is always a valid selector; otherwise the whole namespace would be watched.
        cache.reader(&named.unwrap_or(selection))
    }

    /// Maintains the Secret and serves its certificate, until a stop.
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
                    let secret = &self.inner.secret;
                    tracing::error!(%error, %secret, failures, "serving certificates could not be updated");
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

    /// Checks the cached Secret, and the live one only if something is due; returns the time of the next
    /// check.
    async fn look(&self, reader: &Reader<Full<Secret>>) -> Result<Timestamp, CertificatesError> {
        if let Some(cached) = reader.get(&self.inner.secret)
            && let Ok(mut keyring) = Keyring::read(&content(&cached))
            && let (until, false) = self.tend(&mut keyring)?
        {
            self.serve(keyring)?;
            return Ok(until);
        }
        self.ensure().await
    }

    /// Creates or updates the live Secret and serves its certificate; returns the time of the next check.
    async fn ensure(&self) -> Result<Timestamp, CertificatesError> {
        let Inner { client, secret, .. } = &*self.inner;
        let secrets = client.objects::<Secret>();
        for _ in 0..RACES {
            let live = secrets.find(secret).await?;
            let mut keyring = match &live {
                Some(live) => Keyring::read(live.data.as_ref().unwrap_or(&Content::new())),
                None => Ok(self.inner.known.lock().clone().unwrap_or_default()),
            }
            .map_err(|error| self.unusable(error))?;
            let (until, changed) = self.tend(&mut keyring)?;
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
                // Another replica was faster: use its certificate.
                Err(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CertificatesError::Contended(secret.clone()))
    }

    /// Does everything that is due; returns the time of the next action, and true if anything changed.
    fn tend(&self, keyring: &mut Keyring) -> Result<(Timestamp, bool), CertificatesError> {
        let Inner { names, authority, policy, clock, .. } = &*self.inner;
        keyring.tend(clock(), authority, names, policy).map_err(|error| self.unusable(error))
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
                tracing::info!(%secret, "new serving certificate in use");
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
