//! What each component is told: one file each, from the spec of a Harbor to the spec of the component.

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

/// Which instance of the operator is responsible: as the first operator of these kinds had it, and as ours has it.
const CLASSES: [&str; 2] = [annotation::CLASS, windlass::names::ask::CLASS];

/// What the name of the Secret ends with that has the certificate which users see, where it is ours.
pub const PUBLIC_CERTIFICATE: &str = "public-tls";
/// The same of Notary's.
pub const NOTARY_PUBLIC_CERTIFICATE: &str = "notary-public-tls";

/// A Harbor, as its components are told of it.
pub struct Wiring<'a> {
    harbor: &'a Harbor,
    /// What it is called.
    pub names: Names,
    /// Of which release it is.
    pub release: Release,
    /// How components are reached.
    pub served: Served,
    settings: &'a HarborSettings,
    database: &'a HarborDatabase,
    redis: &'a RedisHost,
    store: Store<'a>,
}

impl<'a> Wiring<'a> {
    /// Of this Harbor; or what its spec lacks, in words that say where.
    pub fn of(harbor: &'a Harbor, release: Release, settings: &'a HarborSettings) -> Result<Self, PlanError> {
        let spec = &harbor.spec;
        let lacks = |field: &str| PlanError::new(format!("spec.{field} is missing: say where it is"));
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

    /// What is the same for every Harbor.
    pub fn common(&self) -> &'a HarborCommon {
        &self.harbor.spec.common
    }

    /// The URL of a component.
    fn url(&self, component: Component) -> String {
        self.names.url(component, self.served)
    }

    /// The certificate of a component, where components speak TLS.
    fn tls(&self, component: Component) -> Option<Tls> {
        (self.served == Served::Https).then(|| Tls::of(self.names.certificate(component)))
    }

    /// One of Redis' databases.
    fn redis(&self, number: i32) -> RedisConnection {
        self.redis.database(number)
    }

    /// The name of a generated Secret.
    pub fn credential(&self, credential: Credential) -> String {
        self.names.with(credential.suffix())
    }

    /// Whom Core and the job service are at the registry.
    fn registry_credentials(&self) -> RegistryCredentials {
        let password_ref = self.credential(Credential::RegistryBasicAuth);
        RegistryCredentials { username: REGISTRY_USER.to_owned(), password_ref }
    }

    /// The Secret with the key of tokens.
    fn token_key(&self) -> String {
        self.names.with(token::SUFFIX)
    }

    /// The Secret with the administrator's first password: the user's, or a generated one.
    pub fn admin_password(&self) -> String {
        let given = &self.common().harbor_admin_password_ref;
        if given.is_empty() { self.credential(Credential::AdminPassword) } else { given.clone() }
    }

    /// The Secret with the certificate that users see.
    pub fn public_certificate(&self) -> Option<String> {
        let expose = &self.common().expose.core;
        self.certificate_for_users(expose, PUBLIC_CERTIFICATE)
    }

    /// How Notary is reached, where there is one.
    pub fn notary_expose(&self) -> Option<&ExposeComponent> {
        let common = self.common();
        common.expose.notary.as_ref().filter(|_| common.notary.is_some())
    }

    /// The Secret with the certificate of Notary's Ingress.
    pub fn notary_public_certificate(&self) -> Option<String> {
        let expose = self.common().expose.notary.as_ref()?;
        self.certificate_for_users(expose, NOTARY_PUBLIC_CERTIFICATE)
    }

    fn certificate_for_users(&self, expose: &ExposeComponent, own: &str) -> Option<String> {
        let built_in = || expose.has_built_in_certificate().then(|| self.names.with(own));
        expose.certificate().map(str::to_owned).or_else(built_in)
    }

    /// How the pods of a component are run, with its image.
    pub fn component(&self, given: Option<&ComponentSpec>, component: Component) -> ComponentSpec {
        let mut spec = given.cloned().unwrap_or_default();
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

    /// The metadata of a component.
    fn metadata(&self) -> ObjectMeta {
        let mut metadata = metadata(&self.names, self.names.base().to_owned());
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::VERSION.to_owned(), self.release.version().to_string());
        // The Harbor has policies of its own, which know who talks to whom.
        annotations.insert(annotation::NETWORK_POLICIES.to_owned(), "false".to_owned());
        let given: &BTreeMap<String, String> = self.harbor.annotations();
        let classes =
            CLASSES.into_iter().filter_map(|class| Some((class.to_owned(), given.get(class)?.clone())));
        annotations.extend(classes);
        metadata
    }

    /// The metadata of a component that an Ingress leads to.
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

    /// Whether it is to have network policies.
    pub fn has_policies(&self) -> bool {
        match self.harbor.annotations().get(annotation::NETWORK_POLICIES) {
            Some(said) => said == "true",
            None => self.settings.network_policies,
        }
    }
}
