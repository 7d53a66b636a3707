//! The generated credentials of every Harbor, as nodes of its plan.

use windlass::{Plan, Planned};

use crate::settings::HarborSettings;

use super::components::Wiring;
use super::credentials::Credential;
use super::token;

/// The generated credentials of a Harbor.
pub(super) struct Secrets {
    pub(super) registry_users: Planned,
    pub(super) registry_http: Planned,
    pub(super) csrf: Planned,
    pub(super) core: Planned,
    pub(super) token: Planned,
    pub(super) admin: Option<Planned>,
    pub(super) encryption_key: Planned,
    pub(super) job_service: Planned,
}

impl Secrets {
    /// Adds the credentials to the plan.
    pub(super) fn plan(wiring: &Wiring<'_>, settings: &HarborSettings, plan: &mut Plan) -> Self {
        let (names, common) = (&wiring.names, wiring.common());
        let (policy, cost) = (common.deletion_policy(), settings.registry_encryption_cost);
        let issuer = common.core.as_ref().and_then(|core| core.token_issuer.as_ref());
        let mut once = |credential: Credential| credential.plan(names, cost, policy, plan);
        Self {
            registry_users: once(Credential::RegistryBasicAuth),
            registry_http: once(Credential::RegistryHttp),
            csrf: once(Credential::Csrf),
            core: once(Credential::CoreSecret),
            admin: common.harbor_admin_password_ref.is_empty().then(|| once(Credential::AdminPassword)),
            encryption_key: once(Credential::EncryptionKey),
            job_service: once(Credential::JobServiceSecret),
            token: token::plan(names, issuer, plan),
        }
    }

    /// Returns the nodes of the Secrets that Core's pods read.
    pub(super) fn of_core(&self) -> impl Iterator<Item = &Planned> {
        let all = [
            &self.registry_users,
            &self.csrf,
            &self.core,
            &self.token,
            &self.encryption_key,
            &self.job_service,
        ];
        all.into_iter().chain(&self.admin)
    }
}
