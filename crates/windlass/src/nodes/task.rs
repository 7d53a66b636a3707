//! A Job that runs to completion once per content.

use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::batch::v1::Job;
use windlass_runtime::cache::Digest;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::apply;
use crate::error::PlanError;
use crate::names::naming;
use crate::plan::node::{Node, Place, Sketched, Visit, Visited};
use crate::plan::{Desired, Plan, Planned};

impl Plan {
    /// Adds a Job that runs to completion once per content: a digest of its spec is part of its name, so a
    /// changed Job is a new one, and the old one is pruned.
    ///
    /// Do not set `ttlSecondsAfterFinished`: a Job that has been deleted runs again.
    pub fn task(&mut self, job: Job) -> Planned {
        let namespace = self.namespace().map(str::to_owned);
        let job = Desired::of(&job, namespace.as_deref()).and_then(|job| named_by_content(&job));
        self.node_or(job.map(|job| (job.id(namespace.as_deref()), Task { job })))
    }
}

struct Task {
    job: Desired,
}

impl Node for Task {
    fn describe(&self) -> String {
        "run to completion".to_owned()
    }

    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        Some((&self.job.resource, &self.job.key))
    }

    fn sketch(&self) -> Sketched<'_> {
        Sketched::Object(&self.job)
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        apply::visit(&self.job, place, run).boxed()
    }
}

/// Returns the Job under a name that changes with its spec.
fn named_by_content(job: &Desired) -> Result<Desired, PlanError> {
    let mut named = job.clone();
    let spec = Digest::of(&job.body["spec"])?;
    let name = naming::by_content(job.key.name(), spec.as_bytes(), naming::JOB);
    named.body["metadata"]["name"] = name.clone().into();
    named.key = ObjectKey::new(job.key.namespace().map(Into::into), name);
    Ok(named)
}
