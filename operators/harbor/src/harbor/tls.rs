//! The Secrets of authorities and certificates, in the plan.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use windlass::{Plan, Planned, Predecessor, RenewContext, Renewed};

use crate::settings::CertificateSettings;

use super::certmanager::{Certificate, Issuer};
use super::names::Names;
use super::names::metadata;
use super::pki::{self, AuthorityRecipe, Content, LeafRecipe};

/// An authority in the plan.
#[derive(Clone, Debug)]
pub struct Authority {
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

fn present(making: &RenewContext<'_>) -> Option<Content> {
    making.present::<Secret>().and_then(|secret| secret.data)
}

impl Authority {
    /// An authority whose Secret has this name, and whose certificates are made so.
    pub fn plan(
        names: &Names,
        name: &str,
        lifetime: Duration,
        certificates: CertificateSettings,
        plan: &mut Plan,
    ) -> Self {
        let recipe = AuthorityRecipe { name: name.to_owned(), lifetime };
        let (own, place) = (names.clone(), name.to_owned());
        let planned = plan.renew(name, format!("{recipe:?}"), move |making| {
            // Makers are not given what is made from their objects: the steps follow the clock.
            let (content, due) = pki::tend_authority(present(making).as_ref(), &[], &recipe, making.now())?;
            Ok(Renewed { object: secret(&own, &place, content), due })
        });
        Self { secret: name.to_owned(), planned, certificates }
    }

    /// Where cert-manager was the authority: in place of a certificate of that name, and of these issuers.
    #[must_use]
    pub fn instead_of(self, certificate: &str, issuers: impl IntoIterator<Item = String>) -> Self {
        let planned = self.planned.clone().takes_over(Predecessor::written_by::<Certificate>(certificate));
        let planned = issuers
            .into_iter()
            .fold(planned, |planned, issuer| planned.takes_over(Predecessor::written_by::<Issuer>(issuer)));
        Self { planned, ..self }
    }

    /// The same, for certificates that are made otherwise.
    #[must_use]
    pub fn issuing(&self, certificates: CertificateSettings) -> Self {
        Self { certificates, ..self.clone() }
    }

    /// A certificate of it, in a Secret of this name, for these hosts.
    pub fn certificate(&self, names: &Names, name: &str, hosts: Vec<String>, plan: &mut Plan) -> Planned {
        let recipe =
            LeafRecipe { hosts, lifetime: self.certificates.duration, key: self.certificates.algorithm };
        let (own, place, authority) = (names.clone(), name.to_owned(), self.secret.clone());
        let planned = plan.renew(name, format!("{recipe:?}"), move |making| {
            let issuer =
                making.before::<Secret>(&authority).and_then(|secret| secret.data).unwrap_or_default();
            let (content, due) = pki::tend_leaf(present(making).as_ref(), &issuer, &recipe, making.now())?;
            Ok(Renewed { object: secret(&own, &place, content), due })
        });
        planned.after([&self.planned])
    }
}
