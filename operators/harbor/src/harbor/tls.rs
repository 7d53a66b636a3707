//! The Secrets of certificate authorities and certificates, as nodes of the plan.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use windlass::{Plan, Planned, Predecessor, RenewContext, Renewed};

use crate::settings::CertificateSettings;

use super::certmanager::{Certificate, Issuer};
use super::names::Names;
use super::names::metadata;
use super::pki::{self, AuthorityRecipe, Content, LeafRecipe};

/// A certificate authority in the plan.
#[derive(Clone, Debug)]
pub(crate) struct Authority {
    secret: String,
    planned: Planned,
    certificates: CertificateSettings,
}

fn secret(names: &Names, name: &str, content: Content) -> Secret {
    Secret {
        metadata: metadata(names, name.to_owned()),
        data: Some(content),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    }
}

fn present(context: &RenewContext<'_>) -> Option<Content> {
    context.present::<Secret>().and_then(|secret| secret.data)
}

impl Authority {
    /// Adds an authority with this Secret name to the plan, with the settings of its certificates.
    pub(crate) fn plan(
        names: &Names,
        name: &str,
        lifetime: Duration,
        certificates: CertificateSettings,
        plan: &mut Plan,
    ) -> Self {
        let recipe = AuthorityRecipe { name: name.to_owned(), lifetime };
        let (own, place) = (names.clone(), name.to_owned());
        let planned = plan.renew(name, format!("{recipe:?}"), move |context| {
            let certificates = context.dependents::<Secret>().into_iter().filter_map(|secret| secret.data);
            let certificates: Vec<_> = certificates.collect();
            let (content, due) =
                pki::tend_authority(present(context).as_ref(), &certificates, &recipe, context.now())?;
            Ok(Renewed { object: secret(&own, &place, content), due })
        });
        Self { secret: name.to_owned(), planned, certificates }
    }

    /// Takes over from cert-manager: from a Certificate of that name, and from these Issuers.
    #[must_use]
    pub(crate) fn instead_of(self, certificate: &str, issuers: impl IntoIterator<Item = String>) -> Self {
        let planned = self.planned.clone().takes_over(Predecessor::written_by::<Certificate>(certificate));
        let planned = issuers
            .into_iter()
            .fold(planned, |planned, issuer| planned.takes_over(Predecessor::written_by::<Issuer>(issuer)));
        Self { planned, ..self }
    }

    /// Returns the same authority with other settings for its certificates.
    #[must_use]
    pub(crate) fn issuing(&self, certificates: CertificateSettings) -> Self {
        Self { certificates, ..self.clone() }
    }

    /// Adds a certificate with this Secret name for these hosts to the plan.
    pub(crate) fn certificate(
        &self,
        names: &Names,
        name: &str,
        hosts: Vec<String>,
        plan: &mut Plan,
    ) -> Planned {
        let recipe =
            LeafRecipe { hosts, lifetime: self.certificates.duration, key: self.certificates.algorithm };
        let (own, place, authority) = (names.clone(), name.to_owned(), self.secret.clone());
        let planned = plan.renew(name, format!("{recipe:?}"), move |context| {
            let issuer =
                context.before::<Secret>(&authority).and_then(|secret| secret.data).unwrap_or_default();
            let (content, due) = pki::tend_leaf(present(context).as_ref(), &issuer, &recipe, context.now())?;
            Ok(Renewed { object: secret(&own, &place, content), due })
        });
        planned.after([&self.planned])
    }
}
