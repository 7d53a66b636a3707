//! The state of an owner's plan, from which a kind's own status is made.

use std::sync::Arc;

use windlass_graph::Report;
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::error::NodeError;
use crate::live::watched::OpenKind;
use crate::live::{Kind, Live};
use crate::plan::Wait;

/// The state of an owner's plan, for its [status](crate::Controls::status).
pub struct PlanState<'a> {
    pub(crate) report: Option<&'a Report<NodeError, Wait>>,
    pub(crate) failed: bool,
    pub(crate) stalled: bool,
    pub(crate) kinds: &'a [Arc<dyn OpenKind>],
    pub(crate) namespace: Option<&'a str>,
}

impl PlanState<'_> {
    /// Returns whether every node is ready.
    pub fn is_ready(&self) -> bool {
        self.report.is_some_and(Report::is_ready)
    }

    /// Returns whether a node needs help, as the condition `Failed` reports it.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether the owner needs help and does not progress without it, as the condition `Stalled`
    /// reports it: its plan cannot be drawn, for example.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Returns the outcome of each node; `None` if there was no run because the plan could not be drawn or
    /// the owner is paused.
    pub fn report(&self) -> Option<&Report<NodeError, Wait>> {
        self.report
    }

    /// Passes the present state of a planned object in the owner's namespace to a function.
    pub fn live<K: Kind, T>(&self, name: &str, look: impl FnOnce(&Live) -> T) -> Option<T> {
        let resource = ResourceType::of::<K>();
        let key = ObjectKey::new(self.namespace.filter(|_| resource.namespaced).map(Str::new), name);
        let kind = self.kinds.iter().find(|kind| *kind.resource() == resource)?;
        kind.get(&key).map(|object| look(object.live()))
    }
}
