//! Blueprints and directors as parts of an operator.

use jiff::Timestamp;
use kube::Resource as _;
use windlass::{Blueprint, Controls, Director, Keyring, Known, PlanController, PlanMetrics};
use windlass_runtime::json::typed;
use windlass_runtime::leader::pod_namespace;

use crate::operator::{Drawer, Operator};
use crate::setup::Setup;
use windlass_runtime::manager::BoxError;

impl Operator {
    /// Adds a kind with a blueprint that declares its resources.
    ///
    /// The program's `graph` command shows the plans of the kinds that are added this way.
    pub fn blueprint<B: Blueprint + Clone>(self, blueprint: B) -> Self {
        self.blueprint_with(blueprint, |unified| unified)
    }

    /// Adds a kind with a blueprint, and sets options of its controller.
    pub fn blueprint_with<B: Blueprint + Clone>(
        mut self,
        blueprint: B,
        options: impl Fn(PlanController<B>) -> PlanController<B> + Send + Sync + 'static,
    ) -> Self {
        let drawing = blueprint.clone();
        self.drawers.push(Drawer {
            api_version: B::Owner::api_version(&()).into_owned(),
            kind: B::Owner::kind(&()).into_owned(),
            draw: Box::new(move |object| {
                let owner: B::Owner = typed(&object).map_err(|error| error.to_string())?;
                windlass::preview(&drawing, &owner).map_err(|error| error.to_string())
            }),
        });
        self.part(move |setup| setup.blueprint(options(PlanController::of(blueprint.clone()))))
    }

    /// Adds a kind with a director, which decides from what its software says.
    ///
    /// The program's `graph` command shows the plan of an owner that does not exist yet: without objects, and
    /// without an observation.
    pub fn director<D: Director + Clone>(self, director: D) -> Self {
        self.director_with(director, |controller| controller)
    }

    /// Adds a kind with a director, and sets options of its controller.
    pub fn director_with<D: Director + Clone>(
        mut self,
        director: D,
        options: impl Fn(PlanController<D>) -> PlanController<D> + Send + Sync + 'static,
    ) -> Self {
        let drawing = director.clone();
        self.drawers.push(Drawer {
            api_version: D::Owner::api_version(&()).into_owned(),
            kind: D::Owner::kind(&()).into_owned(),
            draw: Box::new(move |object| {
                let owner: D::Owner = typed(&object).map_err(|error| error.to_string())?;
                let unobserved = Known::Unknown("this is a preview".to_owned());
                let rehearsal = windlass::rehearse(&drawing, &owner, &[], unobserved, Timestamp::UNIX_EPOCH);
                rehearsal.map(|rehearsal| rehearsal.report).map_err(|error| error.to_string())
            }),
        });
        self.part(move |setup| setup.controlled_by(options(PlanController::directed_by(director.clone()))))
    }
}

impl Setup<'_> {
    /// Adds the controller of a blueprint, with the namespaces and workers from the settings, and declares
    /// the rights that it needs.
    pub fn blueprint<B: Blueprint>(&mut self, controller: PlanController<B>) -> Result<(), BoxError> {
        self.controlled_by(controller)
    }

    /// Adds the controller of a blueprint or of a director, as [`blueprint`](Self::blueprint) does.
    pub fn controlled_by<C: Controls>(&mut self, controller: PlanController<C>) -> Result<(), BoxError> {
        let settings = self.settings();
        let namespace = settings.own_namespace.clone().or_else(|| pod_namespace().ok());
        let namespace = namespace.as_deref().unwrap_or("default").to_owned();
        let mut controller = controller.workers(settings.workers).operator_namespace(&*namespace);
        if !settings.namespaces.is_empty() {
            controller = controller.in_namespaces(settings.namespaces.iter().cloned());
        }
        let controller = controller.metrics(&self.plan_metrics()).keyring(&self.keyring(&namespace));
        let recorder = self.recorder()?;
        self.needs(controller.access());
        let controller = controller.build(self.leader_client(), self.cache(), &recorder)?;
        Ok(self.controller(controller)?)
    }

    /// Returns the digest key that all blueprints of a process share.
    fn keyring(&mut self, namespace: &str) -> Keyring {
        let (client, cache, name) = (self.client().clone(), self.cache().clone(), self.name());
        self.keyring.get_or_insert_with(|| Keyring::new(&client, &cache, namespace, name)).clone()
    }

    /// Returns the metrics that all blueprints of a process share.
    fn plan_metrics(&mut self) -> PlanMetrics {
        let (metrics, limit) = (self.metrics().clone(), self.settings().metrics_owner_limit);
        self.plans.get_or_insert_with(|| PlanMetrics::shown_in(&metrics).owner_limit(limit)).clone()
    }
}
