//! What all parts of a HarborCluster have in common: names, labels, images, and what becomes of data.

use k8s_openapi::api::core::v1::LocalObjectReference;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use windlass::Planned;

use crate::api::HarborCluster;
use crate::api::component::{ImageSpec, PullPolicy};
use crate::api::harbor::{DeletionPolicy, HarborCommon};
use crate::api::names::{annotation, label};
use crate::settings::HarborSettings;

use super::Names;

/// Which instance of the operator is responsible: as the first operator of these kinds had it, and as ours has it.
const INHERITED: [&str; 3] = [annotation::CLASS, windlass::names::ask::CLASS, annotation::NETWORK_POLICIES];

/// One HarborCluster, as its parts are made.
pub struct Site<'a> {
    /// The HarborCluster.
    pub cluster: &'a HarborCluster,
    /// What its objects are called.
    pub names: Names,
    /// What an administrator has decided.
    pub settings: &'a HarborSettings,
}

/// An image, and how it is had.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The image.
    pub reference: String,
    /// When it is pulled.
    pub policy: PullPolicy,
    /// With which Secrets.
    pub secrets: Vec<LocalObjectReference>,
}

impl<'a> Site<'a> {
    /// Of this HarborCluster.
    pub fn of(cluster: &'a HarborCluster, settings: &'a HarborSettings) -> Self {
        Self { cluster, names: Names::of(cluster), settings }
    }

    /// What is the same for every Harbor.
    pub fn common(&self) -> &'a HarborCommon {
        &self.cluster.spec.common
    }

    /// The metadata of an object.
    pub fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.names.namespace().to_owned()),
            labels: Some([(label::CLUSTER.to_owned(), self.names.label())].into()),
            ..ObjectMeta::default()
        }
    }

    /// What children are told that users say in annotations.
    pub fn inherited(&self) -> impl Iterator<Item = (String, String)> {
        let given = self.cluster.annotations();
        INHERITED.into_iter().filter_map(|key| Some((key.to_owned(), given.get(key)?.clone())))
    }

    /// Has the object outlive the HarborCluster, or go with it, as its deletion policy says.
    pub fn keep(&self, planned: Planned) -> Planned {
        match self.common().deletion_policy() {
            DeletionPolicy::Retain => planned.retain(),
            DeletionPolicy::Delete => planned.delete(),
        }
    }

    /// The image of something: the one given, or the usual one, of a repository and with a suffix as they are said.
    pub fn image(
        &self,
        given: &ImageSpec,
        usual: impl FnOnce(Option<&str>, Option<&str>) -> String,
    ) -> Image {
        let source = self.common().image_source.clone().unwrap_or_default();
        let repository = source.repository.as_deref().or(self.settings.image_repository.as_deref());
        let suffix = source.tag_suffix.as_deref().or(self.settings.image_tag_suffix.as_deref());
        let own = !given.image_pull_secrets.is_empty();
        Image {
            reference: given.image.clone().unwrap_or_else(|| usual(repository, suffix)),
            policy: given.image_pull_policy.or(source.image_pull_policy).unwrap_or(PullPolicy::IfNotPresent),
            secrets: if own { given.image_pull_secrets.clone() } else { source.image_pull_secrets },
        }
    }
}

impl Image {
    /// The Secrets as a field of a pod; nothing if there are none.
    pub fn secrets(&self) -> Value {
        if self.secrets.is_empty() { Value::Null } else { json!(self.secrets) }
    }
}
