//! What a status can be made of: the plan's nodes, as they were found.

use windlass_graph::Report;
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::desired::Kind;
use crate::error::{NodeError, Reason};
use crate::kinds::OpenKind;
use crate::live::Live;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a node waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// When to look again, where nobody tells.
    pub(crate) poll: Option<Duration>,
}

impl Wait {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { reason: Reason::Waiting, message: message.into(), poll: None }
    }

    /// In one word.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The state of an owner's plan, for its [status](crate::Blueprint::status).
pub struct Seen<'a> {
    pub(crate) report: Option<&'a Report<NodeError, Wait>>,
    pub(crate) failed: bool,
    pub(crate) kinds: &'a [Arc<dyn OpenKind>],
    pub(crate) namespace: Option<&'a str>,
}

impl Seen<'_> {
    /// Whether every node is ready.
    pub fn is_ready(&self) -> bool {
        self.report.is_some_and(Report::is_ready)
    }

    /// Whether something needs help: what the condition `Failed` says.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// What became of each node; `None` if there was no run: the plan could not be drawn, or the owner is paused.
    pub fn report(&self) -> Option<&Report<NodeError, Wait>> {
        self.report
    }

    /// Looks at a planned object as it is now, in the owner's namespace.
    pub fn live<K: Kind, T>(&self, name: &str, look: impl FnOnce(&Live) -> T) -> Option<T> {
        let resource = ResourceType::of::<K>();
        let key = ObjectKey::new(self.namespace.filter(|_| resource.namespaced).map(Str::new), name);
        let kind = self.kinds.iter().find(|kind| *kind.resource() == resource)?;
        kind.get(&key).map(|object| look(object.live()))
    }
}
