//! The ordered deletion of an owner: its plan is removed in reverse.

use windlass_runtime::controller::Error;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::applier::{Applier, Report};
use super::prune::{self, Pruning};
use super::run::Run;
use crate::needs::Pass;
use crate::plan::drawn::Drawn;
use crate::plan::owner::OwnerView;

/// The result of a teardown.
pub(crate) enum TornDown {
    /// No object that belonged to the owner is left.
    Gone,
    /// Objects that are no longer in the plan are deleted first: these.
    Going(String),
    /// Some nodes are not removed yet.
    Unfinished(Report),
}

impl Applier {
    /// Removes everything that belongs to an owner, dependents first.
    pub(crate) async fn tear_down(
        &self,
        owner: &OwnerView,
        pass: &Pass<'_>,
        drawn: &Drawn,
    ) -> Result<TornDown, Error> {
        // Objects that are no longer in the plan may depend on planned ones.
        let unplanned = self.delete_last(owner, |resource, key| drawn.holds(resource, key)).await?;
        if let Some(going) = unplanned {
            return Ok(TornDown::Going(going));
        }
        let run = Run::new(self, owner, pass, drawn);
        let report: Report =
            drawn.graph.run_reverse(self.concurrency, |place| place.node.remove(place, &run)).await;
        let left = self.inventory(owner, |_, _| false);
        if report.is_ready() && prune::decide(left, true, true) == Pruning::Nothing {
            return Ok(TornDown::Gone);
        }
        Ok(TornDown::Unfinished(report))
    }

    /// Removes everything that belongs to an owner without a known plan, in the reverse order of creation.
    pub(crate) async fn tear_down_inventory(&self, owner: &OwnerView) -> Result<TornDown, Error> {
        let going = self.delete_last(owner, |_, _| false).await?;
        Ok(going.map_or(TornDown::Gone, TornDown::Going))
    }

    /// Deletes the last of the objects that are not planned; returns the objects that are being deleted, if
    /// there are any.
    async fn delete_last(
        &self,
        owner: &OwnerView,
        planned: impl Fn(&ResourceType, &ObjectKey) -> bool,
    ) -> Result<Option<String>, Error> {
        loop {
            match prune::decide(self.inventory(owner, &planned), true, true) {
                Pruning::Delete(objects) => {
                    for object in &objects {
                        self.writer.delete(&object.resource, &object.key, object.uid).await?;
                    }
                    let mut left = self.inventory(owner, &planned);
                    left.retain(|left| objects.iter().any(|object| object.uid == left.uid));
                    if !left.is_empty() {
                        // Their deletion events wake the owner.
                        return Ok(Some(prune::going(&left)));
                    }
                }
                Pruning::Wait(going) => return Ok(Some(prune::going(&going))),
                Pruning::Nothing | Pruning::Hold(_) | Pruning::HeldBack(..) => return Ok(None),
            }
        }
    }
}
