//! The installation's digest key, kept in a Secret, made when it is first needed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::OnceCell;
use windlass_runtime::cache::{Cache, Reader, Selection};
use windlass_runtime::client::{Apply, Client};
use windlass_runtime::key::ObjectKey;

use crate::content::{AsContent, Readable};
use crate::error::{DrawError, NodeError, Reason};
use crate::secrecy::{DigestKey, Random};

const FIELD: &str = "key";

/// Where the key comes from.
pub(crate) struct Keyring {
    client: Client,
    cache: Cache,
    place: ObjectKey,
    manager: String,
    key: OnceCell<DigestKey>,
}

impl Keyring {
    pub(crate) fn new(client: &Client, cache: &Cache, place: ObjectKey, manager: &str) -> Self {
        let key = OnceCell::new();
        Self { client: client.clone(), cache: cache.clone(), place, manager: manager.to_owned(), key }
    }

    pub(crate) fn given(client: &Client, cache: &Cache, key: DigestKey) -> Self {
        let place = ObjectKey::cluster("");
        Self {
            client: client.clone(),
            cache: cache.clone(),
            place,
            manager: String::new(),
            key: OnceCell::new_with(Some(key)),
        }
    }

    /// The key. The first caller reads it from its Secret, or makes that; the others wait for it.
    pub(crate) async fn get(&self) -> Result<&DigestKey, NodeError> {
        self.key.get_or_try_init(|| self.load()).await
    }

    async fn load(&self) -> Result<DigestKey, NodeError> {
        // By a watch and not by a get, so that a restart costs lists only. It ends with this function.
        let broken = |error: &dyn std::fmt::Display| {
            let said = format!("the digest key in Secret {} cannot be used: {error}", self.place);
            NodeError::transient(Reason::Unavailable, said)
        };
        let selection = Selection::all()
            .in_namespace(self.place.namespace().unwrap_or_default())
            .fields(&format!("metadata.name={}", self.place.name()))
            .map_err(|error| broken(&error))?;
        let reader: Reader<Readable<Secret>> = self.cache.reader(&selection);
        reader.synced().await;
        if reader.get(&self.place).is_none() {
            self.make(&broken).await?;
        }
        // What is there now is the key, whoever made it.
        let stored = match reader.get(&self.place) {
            Some(stored) => stored.value(FIELD),
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
        let bytes = Random::new().bytes::<32>().map_err(|error: DrawError| broken(&error))?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": self.place.name(), "namespace": self.place.namespace(), "resourceVersion": "1"},
            "type": "windlass.dev/digest-key",
            "data": {FIELD: BASE64_STANDARD.encode(bytes)},
        });
        let secrets =
            self.client.objects_of::<IgnoredAny>(windlass_runtime::resource::ResourceType::of::<Secret>());
        match secrets.apply(&self.place, &secret, &Apply::by(&*self.manager)).await {
            Ok(_) => Ok(()),
            // Another replica was faster; its key comes by the watch.
            Err(error) if error.is_conflict() || error.is_already_exists() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
