//! The certificates of a Harbor's components and the public certificates, as nodes of its plan.

use windlass::{Plan, Planned, Predecessor};

use crate::api::notary::KeyAlgorithm;
use crate::catalogue::Component;
use crate::settings::{CertificateSettings, HarborSettings};

use super::certmanager::Certificate;
use super::components::{NOTARY_PUBLIC_CERTIFICATE, PUBLIC_CERTIFICATE, Wiring};
use super::proxy;
use super::tls::Authority;

/// The certificates of a Harbor.
pub(super) struct Certificates {
    parts: Vec<(Component, Planned)>,
    /// The public certificate, if this operator generates it.
    pub(super) public: Option<Planned>,
    /// The certificate of Notary's Ingress, if this operator generates it.
    pub(super) notary: Option<Planned>,
}

impl Certificates {
    /// Adds the certificates and their authorities to the plan.
    pub(super) fn plan(wiring: &Wiring<'_>, settings: &HarborSettings, plan: &mut Plan) -> Self {
        let (names, common) = (&wiring.names, wiring.common());
        let authority = |name: &str, plan: &mut Plan| {
            let duration = settings.internal_certificate_duration;
            let certificates = CertificateSettings { duration, algorithm: KeyAlgorithm::Ecdsa };
            let own = settings.internal_authority_duration;
            Authority::plan(names, &names.with(name), own, certificates, plan)
        };
        let mut parts = Vec::new();
        if wiring.has_tls() {
            let issuers = ["internal-authority", "internal"].map(|issuer| names.with(issuer));
            let authority = authority("internal-tls-authority", plan)
                .instead_of(&names.with("internal-authority"), issuers);
            let wanted = [
                (Component::Registry, true),
                (Component::RegistryController, true),
                (Component::Core, true),
                (Component::JobService, true),
                (Component::Portal, common.portal.is_some()),
                (Component::ChartMuseum, common.chartmuseum.is_some()),
                (Component::Exporter, common.exporter.is_some()),
                (Component::Trivy, common.trivy.is_some()),
                (Component::NotaryServer, common.notary.is_some()),
            ];
            for (part, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
                let name = names.certificate(part);
                let before = names.with(&format!("internal-{}", part.as_str()));
                let planned = authority.certificate(names, &name, names.hosts(part), plan);
                parts.push((part, planned.takes_over(Predecessor::written_by::<Certificate>(before))));
            }
        }
        let core = common.expose.core.has_built_in_certificate();
        let notary = wiring.notary_expose().filter(|expose| expose.has_built_in_certificate());
        let public_authority = (core || notary.is_some()).then(|| authority("public-authority", plan));
        let own = |name: &str, host: &str, plan: &mut Plan| {
            let authority = public_authority.as_ref()?;
            Some(authority.certificate(names, &names.with(name), vec![host.to_owned()], plan))
        };
        let public = core.then(|| own(PUBLIC_CERTIFICATE, proxy::host(&common.external_url), plan)).flatten();
        let notary = notary.and_then(|expose| expose.ingress.as_ref());
        let notary = notary.and_then(|ingress| own(NOTARY_PUBLIC_CERTIFICATE, &ingress.host, plan));
        Self { parts, public, notary }
    }

    /// Returns the certificate of a component; `None` without internal TLS.
    pub(super) fn of(&self, part: Component) -> Option<&Planned> {
        self.parts.iter().find(|(of, _)| *of == part).map(|(_, planned)| planned)
    }
}
