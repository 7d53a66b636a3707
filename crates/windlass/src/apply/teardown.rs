//! The end of an owner whose deletion has an order: the plan backwards.

use windlass_runtime::controller::Error;

use super::applier::{Applier, Report};
use super::prune::{self, Pruning};
use super::run::Run;
use crate::needs::Pass;
use crate::plan::drawn::Drawn;
use crate::plan::owner::OwnerView;

/// The result of a teardown.
pub(crate) enum TornDown {
    /// Nothing that belonged to the owner is left.
    Gone,
    /// Objects that are in no plan any more go first: which.
    Going(String),
    /// Some nodes are not gone yet.
    Unfinished(Report),
}

impl Applier {
    /// Takes down everything that belongs to an owner, dependents first.
    pub(crate) async fn tear_down(
        &self,
        owner: &OwnerView,
        pass: &Pass<'_>,
        drawn: &Drawn,
    ) -> Result<TornDown, Error> {
        // What is in no plan any more may depend on what is.
        let unplanned = || self.inventory(owner, |resource, key| drawn.holds(resource, key));
        if let Pruning::Delete(objects) = prune::decide(unplanned(), true) {
            for object in &objects {
                self.writer.delete(&object.resource, &object.key, object.uid).await?;
            }
        }
        if let Pruning::Delete(going) | Pruning::Wait(going) = prune::decide(unplanned(), true) {
            // Its going wakes us.
            return Ok(TornDown::Going(prune::going(&going)));
        }
        let run = Run::new(self, owner, pass, drawn);
        let report: Report =
            drawn.graph.run_reverse(self.concurrency, |place| place.node.remove(place, &run)).await;
        let left = self.inventory(owner, |_, _| false);
        if report.is_ready() && prune::decide(left, true) == Pruning::Nothing {
            return Ok(TornDown::Gone);
        }
        Ok(TornDown::Unfinished(report))
    }
}
