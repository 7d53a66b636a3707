//! The names by which the API server finds an operator's webhooks.

use windlass_runtime::webhook::Target;

use crate::hooks::{Hook, Sort};
use crate::operator::Operator;

/// The names by which the API server finds an operator's webhooks: in one place, because both sides must
/// agree.
pub(crate) struct WebhookNames {
    pub(crate) service: String,
    pub(crate) secret: String,
    pub(crate) dns: String,
    pub(crate) configuration: String,
}

impl WebhookNames {
    pub(crate) fn of(operator: &Operator, namespace: &str) -> Self {
        let service = format!("{}-webhooks", operator.name);
        Self {
            dns: format!("{service}.{namespace}.svc"),
            secret: service.clone(),
            service,
            configuration: operator.cluster_name(namespace),
        }
    }

    /// Returns the configurations that need the CA certificate of the webhooks.
    pub(crate) fn targets(&self, hooks: &[Hook], converted: &[String]) -> Vec<Target> {
        let any = |sort| hooks.iter().any(|hook| hook.sort == sort);
        let mutating = any(Sort::Mutating).then(|| Target::mutating(&*self.configuration));
        let validating = any(Sort::Validating).then(|| Target::validating(&*self.configuration));
        let definitions = converted.iter().map(Target::definition);
        mutating.into_iter().chain(validating).chain(definitions).collect()
    }
}
