//! How writes are done: in whose name, under which conditions.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::query::encode;
use crate::meta::{ResourceVersion, Uid};

/// How an apply is done: by whom, and whether fields of other managers are taken.
#[derive(Debug, Clone)]
pub struct Apply {
    manager: String,
    force: bool,
    pub(super) dry_run: bool,
}

impl Apply {
    /// In the name of this field manager. Without [`force`](Self::force), a field that another manager holds with
    /// another value is a [`FieldConflict`](super::Failure::FieldConflict).
    pub fn by(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), force: false, dry_run: false }
    }

    /// Take fields from other managers.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Only say what would come of it.
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

/// A change of parts of an object.
#[derive(Debug, Clone)]
pub enum Patch {
    /// RFC 7386: what is given replaces what is there, `null` removes.
    Merge(serde_json::Value),
    /// RFC 6902: operations in order, all or none.
    Json(serde_json::Value),
}

/// How an object is deleted.
#[derive(Debug, Clone, Default)]
pub struct Delete {
    pub(super) uid: Option<Uid>,
    resource_version: Option<ResourceVersion>,
    propagation: Option<Propagation>,
    grace: Option<Duration>,
}

/// What becomes of what an object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// It is deleted afterwards.
    Background,
    /// It is deleted before.
    Foreground,
    /// It stays.
    Orphan,
}

/// What came of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone.
    Done,
    /// The object is marked; a finalizer or a grace period holds it.
    Pending,
}

impl Delete {
    /// Without preconditions: whatever has that name.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only this incarnation: anything else of that name is a [`Conflict`](super::Failure::Conflict).
    pub fn incarnation(uid: Uid) -> Self {
        Self { uid: Some(uid), ..Self::default() }
    }

    /// Only if it has not changed since this version.
    #[must_use]
    pub fn unchanged_since(mut self, version: ResourceVersion) -> Self {
        self.resource_version = Some(version);
        self
    }

    /// What becomes of what it owns; otherwise the kind's default (nearly always in the background).
    #[must_use]
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = Some(propagation);
        self
    }

    /// How long it may take to stop, in whole seconds.
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
