//! Options of writes: field manager, preconditions, propagation.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::query::encode;
use crate::meta::{ResourceVersion, Uid};

/// Options of a server-side apply: the field manager, and force.
#[derive(Debug, Clone)]
pub struct Apply {
    manager: String,
    force: bool,
    pub(super) dry_run: bool,
}

impl Apply {
    /// Applies as this field manager. Without [`force`](Self::force), a field that another manager owns with
    /// a different value is a [`FieldConflict`](super::Failure::FieldConflict).
    pub fn by(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), force: false, dry_run: false }
    }

    /// Takes over fields from other managers.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Does not persist anything; the response is what the apply would result in.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    pub(super) fn query(&self) -> String {
        let manager = encode(&self.manager);
        let dry_run = if self.dry_run { "&dryRun=All" } else { "" };
        format!("fieldManager={manager}&force={}{dry_run}", self.force)
    }
}

/// A patch of an object.
#[derive(Debug, Clone)]
pub enum Patch {
    /// RFC 7386: given fields replace present ones, `null` removes.
    Merge(serde_json::Value),
    /// RFC 6902: operations in order, all or none.
    Json(serde_json::Value),
}

/// Options of a delete.
#[derive(Debug, Clone, Default)]
pub struct Delete {
    pub(super) uid: Option<Uid>,
    resource_version: Option<ResourceVersion>,
    propagation: Option<Propagation>,
    grace: Option<Duration>,
}

/// The propagation policy: the fate of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// Dependents are deleted afterwards.
    Background,
    /// Dependents are deleted first.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// The result of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone.
    Done,
    /// The object is marked for deletion; a finalizer or a grace period delays it.
    Pending,
}

impl Delete {
    /// Deletes the object of that name, without preconditions.
    pub fn any() -> Self {
        Self::default()
    }

    /// Deletes only the object with this uid: any other of that name is a
    /// [`Conflict`](super::Failure::Conflict).
    pub fn incarnation(uid: Uid) -> Self {
        Self { uid: Some(uid), ..Self::default() }
    }

    /// Deletes only if the object has not changed since this version.
    #[must_use]
    pub fn unchanged_since(mut self, version: ResourceVersion) -> Self {
        self.resource_version = Some(version);
        self
    }

    /// Sets the propagation policy; the default depends on the kind and is nearly always background.
    #[must_use]
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = Some(propagation);
        self
    }

    /// Sets the grace period, in whole seconds.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    pub(super) fn body(&self) -> serde_json::Value {
        let mut preconditions = serde_json::Map::new();
        if let Some(uid) = self.uid {
            preconditions.insert("uid".to_owned(), json!(uid));
        }
        if let Some(version) = &self.resource_version {
            preconditions.insert("resourceVersion".to_owned(), json!(version.to_string()));
        }
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if !preconditions.is_empty() {
            body["preconditions"] = preconditions.into();
        }
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = json!(propagation);
        }
        if let Some(grace) = self.grace {
            body["gracePeriodSeconds"] = json!(grace.as_secs());
        }
        body
    }
}
