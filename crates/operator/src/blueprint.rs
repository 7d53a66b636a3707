//! Blueprints as parts of an operator.

use windlass::{Blueprint, PlanMetrics, Unified};
use windlass_runtime::leader::pod_namespace;

use crate::operator::Operator;
use crate::setup::Setup;
use windlass_runtime::manager::BoxError;

impl Operator {
    /// A kind whose resources are declared by a blueprint. For other than the usual options, take
    /// [`Setup::blueprint`] in a part.
    pub fn blueprint<B: Blueprint + Clone>(self, blueprint: B) -> Self {
        self.part(move |setup| setup.blueprint(Unified::of(blueprint.clone())))
    }
}

impl Setup<'_> {
    /// Adds the controller of a blueprint, with the namespaces and workers that the user wants, and says what it needs.
    pub fn blueprint<B: Blueprint>(&mut self, unified: Unified<B>) -> Result<(), BoxError> {
        let settings = self.settings();
        let home = settings.own_namespace.clone().or_else(|| pod_namespace().ok());
        let mut unified = unified.workers(settings.workers).home(home.as_deref().unwrap_or("default"));
        if !settings.namespaces.is_empty() {
            unified = unified.in_namespaces(settings.namespaces.iter().cloned());
        }
        let unified = unified.metrics(&self.plan_metrics());
        let recorder = self.recorder()?;
        self.needs(unified.access());
        let controller = unified.build(self.client(), self.cache(), &recorder)?;
        Ok(self.controller(controller)?)
    }

    /// All blueprints of a process count in one place.
    fn plan_metrics(&mut self) -> PlanMetrics {
        let metrics = self.metrics().clone();
        self.plans.get_or_insert_with(|| PlanMetrics::shown_in(&metrics)).clone()
    }
}
