//! What every component can be told: how many, which image, where.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, LocalObjectReference, ResourceRequirements, Toleration, TopologySpreadConstraint,
    Volume, VolumeMount,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::embedded::Embedded;
use super::pattern;

choice! {
    /// When the image is pulled.
    PullPolicy { Always = "Always", Never = "Never", IfNotPresent = "IfNotPresent" }
}

/// How the pods of a component are run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentSpec {
    /// Annotations of its pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub template_annotations: BTreeMap<String, String>,
    /// Labels of its pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub template_labels: BTreeMap<String, String>,
    /// How many pods; 1 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// The ServiceAccount under which it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Whether its pods get a token of that ServiceAccount; they get none if nothing is said. A cloud that knows pods by their
    /// ServiceAccount brings a token of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Labels that its nodes must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it bears.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Embedded<Toleration>>,
    /// CPU and memory of each of its containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
    /// The image, instead of the one that belongs to the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When the image is pulled; IfNotPresent if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets with which it is pulled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Named>")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Near to and far from which nodes and pods it runs, as in a Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Embedded<Affinity>>,
    /// How its pods are spread, as in a Pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<Embedded<TopologySpreadConstraint>>,
    /// Its priority where nodes are full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// More environment, as in a container. What the operator sets itself cannot be changed here, and no pods are replaced when a Secret
    /// that is named here changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_env: Vec<Embedded<EnvVar>>,
    /// More volumes, as in a Pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_volumes: Vec<Embedded<Volume>>,
    /// Where in the container they are, as in a container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_volume_mounts: Vec<Embedded<VolumeMount>>,
}

impl ComponentSpec {
    /// How many pods there should be.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }

    /// When the image is pulled.
    pub fn pull_policy(&self) -> PullPolicy {
        self.image_pull_policy.unwrap_or(PullPolicy::IfNotPresent)
    }
}

/// The image of something that is not one of Harbor's components.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSpec {
    /// The image, instead of the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When it is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets with which it is pulled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Named>")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// Where all images come from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSource {
    /// The registry and path before the image's own name, instead of its usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Put after the version in the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag_suffix: Option<String>,
    /// When images are pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets with which they are pulled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Named>")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// The schema of a reference by name, which may be empty.
#[derive(JsonSchema)]
#[allow(dead_code)] // only its schema is used
struct Named {
    /// The name.
    name: Option<String>,
}

/// The certificate with which a component serves. To be there at all turns TLS on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tls {
    /// The Secret with tls.crt, tls.key and ca.crt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

impl Tls {
    /// With this Secret.
    pub fn of(secret: impl Into<String>) -> Self {
        Self { certificate_ref: Some(secret.into()) }
    }
}

/// The scheme and port of a component's Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Over TLS.
    Https,
    /// In the clear.
    Http,
}

impl Served {
    /// With or without this certificate.
    pub fn with(tls: Option<&Tls>) -> Self {
        if tls.is_some() { Self::Https } else { Self::Http }
    }

    /// `https` or `http`: the scheme, and the name of ports.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The port of the Service.
    pub const fn service_port(self) -> i32 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }

    /// The port of the container, where a component has both.
    pub const fn container_port(self) -> i32 {
        match self {
            Self::Https => 8443,
            Self::Http => 8080,
        }
    }
}
