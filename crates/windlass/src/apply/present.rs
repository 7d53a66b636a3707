//! The owner as stored on the server, read once before an object is deleted on its behalf.
//!
//! A cached owner may be older than the objects that belong to it: owners and their objects have separate
//! watches, and a new leader starts with a cache of its own. An outdated spec would delete objects that the
//! present one has just created.

use serde_json::Value;
use windlass_runtime::controller::Error;

use super::applier::Applier;
use crate::plan::owner::OwnerView;

impl Applier {
    /// Returns whether the server has the owner with the cached spec, and the owner is not being deleted.
    pub(crate) async fn is_present(&self, owner: &OwnerView) -> Result<bool, Error> {
        let is_same = |meta: &Value| {
            meta["generation"].as_i64().unwrap_or_default() == owner.generation
                && meta["deletionTimestamp"].is_null()
        };
        self.owner_is(owner, is_same).await
    }

    /// Returns whether the owner is being deleted on the server.
    pub(crate) async fn is_going(&self, owner: &OwnerView) -> Result<bool, Error> {
        self.owner_is(owner, |meta| !meta["deletionTimestamp"].is_null()).await
    }

    async fn owner_is(&self, owner: &OwnerView, is_right: impl Fn(&Value) -> bool) -> Result<bool, Error> {
        let live = self.writer.read(&owner.resource, &owner.key).await?;
        Ok(live.is_some_and(|live| {
            let meta = &live["metadata"];
            meta["uid"] == *owner.uid.to_string() && is_right(meta)
        }))
    }
}
