//! The digest key of the installation: kept in a Secret, created when it is first needed.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::OnceCell;
use windlass_runtime::cache::{Cache, Reader, Selection};
use windlass_runtime::client::{Apply, Client};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::error::{NodeError, PlanError, Reason};
use crate::live::content::{AsContent, Readable};
use crate::names::digest_key::{FIELD, SUFFIX, TYPE};
use crate::plan::{DigestKey, Random};

/// The source of the digest key: a Secret that is read or created when the key is first needed.
///
/// Controllers of one process that share it ([`PlanController::keyring`](crate::PlanController::keyring))
/// have one key, read once.
#[derive(Clone)]
pub struct Keyring(Arc<Holder>);

struct Holder {
    client: Client,
    cache: Cache,
    place: ObjectKey,
    manager: String,
    key: OnceCell<DigestKey>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyring").field(&self.0.place).finish()
    }
}

impl Keyring {
    /// Returns the keyring of an operator or controller of this name, with its key in the Secret
    /// `<name>-digest-key` of this namespace.
    pub fn new(client: &Client, cache: &Cache, namespace: &str, name: &str) -> Self {
        Self::with(client, cache, Self::place_of(namespace, name), name, OnceCell::new())
    }

    pub(crate) fn given(client: &Client, cache: &Cache, key: DigestKey) -> Self {
        Self::with(client, cache, ObjectKey::cluster(""), "", OnceCell::new_with(Some(key)))
    }

    fn with(
        client: &Client,
        cache: &Cache,
        place: ObjectKey,
        manager: &str,
        key: OnceCell<DigestKey>,
    ) -> Self {
        let (client, cache, manager) = (client.clone(), cache.clone(), manager.to_owned());
        Self(Arc::new(Holder { client, cache, place, manager, key }))
    }

    /// Returns the key of the Secret that holds the digest key of an operator or controller of this name.
    pub fn place_of(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced(namespace, format!("{name}{SUFFIX}"))
    }

    /// Returns the key of its Secret.
    pub(crate) fn place(&self) -> &ObjectKey {
        &self.0.place
    }

    /// Returns the digest key. The first caller reads it from its Secret, or creates the Secret; other
    /// callers wait for it.
    pub(crate) async fn get(&self) -> Result<&DigestKey, NodeError> {
        self.0.key.get_or_try_init(|| self.0.load()).await
    }
}

impl Holder {
    async fn load(&self) -> Result<DigestKey, NodeError> {
        // Read by a watch instead of a get, so that a restart costs lists only. The watch ends with this
        // function.
        let broken = |error: &dyn std::fmt::Display| {
            let message = format!("the digest key in Secret {} cannot be used: {error}", self.place);
            NodeError::transient(Reason::Unavailable, message)
        };
        let selection = Selection::all()
            .in_namespace(self.place.namespace().unwrap_or_default())
            .fields(&format!("metadata.name={}", self.place.name()))
            .map_err(|error| broken(&error))?;
        let secrets = ResourceType::of::<Secret>();
        let reader: Reader<Readable> = self.cache.reader_of(&secrets, &selection);
        reader.synced().await;
        if reader.get(&self.place).is_none() {
            self.make(&broken).await?;
        }
        // The Secret that exists now holds the key, no matter which replica created it.
        let stored = match reader.get(&self.place) {
            Some(stored) => stored.value(&secrets, FIELD),
            None => return Err(broken(&"it has not been read back yet")),
        };
        let bytes: Option<[u8; 32]> = stored.and_then(|bytes| bytes.try_into().ok());
        bytes.map(|bytes| DigestKey::from_bytes(&bytes)).ok_or_else(|| {
            broken(
                &"it has no 32 bytes under `key`: delete it to have a new one made, which restarts nothing",
            )
        })
    }

    async fn make(&self, broken: &impl Fn(&dyn std::fmt::Display) -> NodeError) -> Result<(), NodeError> {
        let bytes = Random::new().bytes::<32>().map_err(|error: PlanError| broken(&error))?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": self.place.name(), "namespace": self.place.namespace(), "resourceVersion": "1"},
            "type": TYPE,
            "data": {FIELD: BASE64_STANDARD.encode(bytes)},
        });
        let secrets =
            self.client.objects_of::<IgnoredAny>(windlass_runtime::resource::ResourceType::of::<Secret>());
        match secrets.apply(&self.place, &secret, &Apply::by(&*self.manager)).await {
            Ok(_) => Ok(()),
            // Another replica was faster; the watch delivers its key.
            Err(error) if error.is_conflict() || error.is_already_exists() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
