//! The specs of components: one file each, from the spec of a Harbor to the spec of the component.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::PlanError;

use crate::api::Harbor;
use crate::api::component::{ComponentSpec, Served, Tls};
use crate::api::core_kind::RegistryCredentials;
use crate::api::driver::{ImageChartStorage, Store};
use crate::api::harbor::HarborCommon;
use crate::api::names::annotation;
use crate::api::network::{ExposeComponent, IngressController};
use crate::api::postgres::HarborDatabase;
use crate::api::redis::{RedisConnection, RedisHost};
use crate::catalogue::{Component, Release};
use crate::settings::HarborSettings;
use crate::wiring;

use super::credentials::{Credential, REGISTRY_USER};
use super::names::{Names, metadata};
use super::token;

mod chartmuseum;
mod core_spec;
mod exporter;
mod jobservice;
mod notary;
mod portal;
mod registry;
mod trivy;

/// Annotations that components inherit: the class of the operator, in upstream's and in our form.
const CLASSES: [&str; 2] = [annotation::CLASS, windlass::names::ask::CLASS];

/// Suffix of the Secret with the public certificate, if this operator generates it.
pub(crate) const PUBLIC_CERTIFICATE: &str = "public-tls";
/// Suffix of the Secret with Notary's public certificate, if this operator generates it.
pub(crate) const NOTARY_PUBLIC_CERTIFICATE: &str = "notary-public-tls";

/// A Harbor, while the specs of its components are built.
pub(crate) struct Wiring<'a> {
    harbor: &'a Harbor,
    /// The names of its objects.
    pub names: Names,
    /// The release of Harbor.
    pub release: Release,
    /// HTTP or HTTPS between components.
    pub served: Served,
    settings: &'a HarborSettings,
    database: &'a HarborDatabase,
    redis: &'a RedisHost,
    store: Store<'a>,
}

impl<'a> Wiring<'a> {
    /// Returns the wiring of a Harbor, or an error that names the missing field.
    pub(crate) fn of(
        harbor: &'a Harbor,
        release: Release,
        settings: &'a HarborSettings,
    ) -> Result<Self, PlanError> {
        let spec = &harbor.spec;
        let lacks = |field: &str| PlanError::new(format!("spec.{field} is missing: set it"));
        let storage = spec.image_chart_storage.as_ref();
        Ok(Self {
            harbor,
            names: Names::of(harbor),
            release,
            served: if spec.common.has_internal_tls() { Served::Https } else { Served::Http },
            settings,
            database: spec.database.as_ref().ok_or_else(|| lacks("database"))?,
            redis: spec.redis.as_ref().ok_or_else(|| lacks("redis"))?,
            store: storage.and_then(ImageChartStorage::store).ok_or_else(|| lacks("imageChartStorage"))?,
        })
    }

    /// Returns the settings that Harbor and HarborCluster have in common.
    pub(crate) fn common(&self) -> &'a HarborCommon {
        &self.harbor.spec.common
    }

    /// Returns the URL of a component.
    fn url(&self, component: Component) -> String {
        self.names.url(component, self.served)
    }

    /// Returns the certificate settings of a component, with internal TLS.
    fn tls(&self, component: Component) -> Option<Tls> {
        (self.served == Served::Https).then(|| Tls::of(self.names.certificate(component)))
    }

    /// Returns the connection to one of the Redis databases.
    fn redis(&self, number: i32) -> RedisConnection {
        self.redis.database(number)
    }

    /// Returns advice if the release ignores the certificate of Redis.
    pub(crate) fn ignored_certificate(&self) -> Option<String> {
        wiring::ignored_certificate("spec.redis", self.redis, &self.release)
    }

    /// Returns the name of a generated Secret.
    pub(crate) fn credential(&self, credential: Credential) -> String {
        self.names.with(credential.suffix())
    }

    /// Returns the credentials of Core and JobService for the registry.
    fn registry_credentials(&self) -> RegistryCredentials {
        let password_ref = self.credential(Credential::RegistryBasicAuth);
        RegistryCredentials { username: REGISTRY_USER.to_owned(), password_ref }
    }

    /// Returns the name of the Secret with the token key.
    fn token_key(&self) -> String {
        self.names.with(token::SUFFIX)
    }

    /// Returns the name of the Secret with the initial administrator password: the one in the spec, or the
    /// generated one.
    pub(crate) fn admin_password(&self) -> String {
        let named = &self.common().harbor_admin_password_ref;
        if named.is_empty() { self.credential(Credential::AdminPassword) } else { named.clone() }
    }

    /// Returns the name of the Secret with the public certificate.
    pub(crate) fn public_certificate(&self) -> Option<String> {
        let expose = &self.common().expose.core;
        self.certificate_for_users(expose, PUBLIC_CERTIFICATE)
    }

    /// Returns the expose settings of Notary, if Notary is enabled.
    pub(crate) fn notary_expose(&self) -> Option<&ExposeComponent> {
        let common = self.common();
        common.expose.notary.as_ref().filter(|_| common.notary.is_some())
    }

    /// Returns the name of the Secret with the certificate of Notary's Ingress.
    pub(crate) fn notary_public_certificate(&self) -> Option<String> {
        let expose = self.common().expose.notary.as_ref()?;
        self.certificate_for_users(expose, NOTARY_PUBLIC_CERTIFICATE)
    }

    fn certificate_for_users(&self, expose: &ExposeComponent, own: &str) -> Option<String> {
        let built_in = || expose.has_built_in_certificate().then(|| self.names.with(own));
        expose.certificate().map(str::to_owned).or_else(built_in)
    }

    /// Returns the common settings of a component with its image.
    pub(crate) fn component(&self, own: Option<&ComponentSpec>, component: Component) -> ComponentSpec {
        let mut spec = own.cloned().unwrap_or_default();
        let source = self.common().image_source.clone().unwrap_or_default();
        let repository = source.repository.as_deref().or(self.settings.image_repository.as_deref());
        let suffix = source.tag_suffix.as_deref().or(self.settings.image_tag_suffix.as_deref());
        spec.image = spec.image.or_else(|| self.release.image_reference(component, repository, suffix));
        spec.image_pull_policy = spec.image_pull_policy.or(source.image_pull_policy);
        if spec.image_pull_secrets.is_empty() {
            spec.image_pull_secrets = source.image_pull_secrets;
        }
        spec
    }

    /// Returns the metadata of a component.
    fn metadata(&self) -> ObjectMeta {
        let mut metadata = metadata(&self.names, self.names.base().to_owned());
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::VERSION.to_owned(), self.release.version().to_string());
        // The Harbor has NetworkPolicies of its own, which know the connections between components.
        annotations.insert(annotation::NETWORK_POLICIES.to_owned(), "false".to_owned());
        let annotated: &BTreeMap<String, String> = self.harbor.annotations();
        let classes =
            CLASSES.into_iter().filter_map(|class| Some((class.to_owned(), annotated.get(class)?.clone())));
        annotations.extend(classes);
        metadata
    }

    /// Returns the metadata of a component behind an Ingress.
    fn metadata_behind_ingress(&self) -> ObjectMeta {
        let mut metadata = self.metadata();
        let ingress = self.common().expose.core.ingress.as_ref();
        let controller = ingress.map_or(IngressController::Default, |ingress| ingress.controller);
        metadata
            .annotations
            .get_or_insert_default()
            .insert(annotation::INGRESS_CONTROLLER.into(), controller.to_string());
        metadata
    }

    /// Returns true if the Harbor has NetworkPolicies.
    pub(crate) fn has_policies(&self) -> bool {
        match self.harbor.annotations().get(annotation::NETWORK_POLICIES) {
            Some(value) => value == "true",
            None => self.settings.network_policies,
        }
    }
}
