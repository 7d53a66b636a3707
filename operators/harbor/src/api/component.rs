//! The pod settings that every Harbor component shares: replicas, image, resources and scheduling.

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
    /// Image pull policy of a container, as in Kubernetes.
    PullPolicy { Always = "Always", Never = "Never", IfNotPresent = "IfNotPresent" }
}

/// Pod settings of a component: replicas, image, resources and scheduling.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ComponentSpec {
    /// Annotations added to the component's pods. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub template_annotations: BTreeMap<String, String>,
    /// Labels added to the component's pods. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub template_labels: BTreeMap<String, String>,
    /// Number of pods of the component. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Name of the ServiceAccount that the component's pods run as. If unset, Kubernetes uses the `default`
    /// ServiceAccount of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Mount an API token of the ServiceAccount into the component's pods. Default: false. Cloud workload
    /// identity brings a token of its own and does not need this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Labels that a node must have to run the component's pods, as in a Pod. If unset, any node is allowed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of the component's pods, as in a Pod. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Embedded<Toleration>>,
    /// CPU and memory requests and limits of the component's container, as in a Pod. If unset, the container
    /// has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
    /// Full image reference of the component. If unset, the image of the Harbor version is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image pull policy of the component: `Always`, `Never` or `IfNotPresent`. If unset,
    /// `imageSource.imagePullPolicy` of the Harbor applies where there is one, otherwise `IfNotPresent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets with the registry credentials for pulling the component's image. If empty,
    /// `imageSource.imagePullSecrets` of the Harbor applies where there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Named>")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Node and pod affinity of the component's pods, as in a Pod. If unset, the pods have no affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Embedded<Affinity>>,
    /// Topology spread constraints of the component's pods, as in a Pod. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<Embedded<TopologySpreadConstraint>>,
    /// Name of the PriorityClass of the component's pods. If unset, the cluster's default applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Additional environment variables of the component's container, as in a Pod. A variable that the
    /// operator sets itself is rejected, and pods are not restarted when a Secret referenced here changes.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_env: Vec<Embedded<EnvVar>>,
    /// Additional volumes of the component's pods, as in a Pod. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_volumes: Vec<Embedded<Volume>>,
    /// Additional volume mounts of the component's container, as in a Pod. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_volume_mounts: Vec<Embedded<VolumeMount>>,
}

impl ComponentSpec {
    /// Returns the number of pods, with the default applied.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(1)
    }

    /// Returns the image pull policy, with the default applied.
    pub(crate) fn pull_policy(&self) -> PullPolicy {
        self.image_pull_policy.unwrap_or(PullPolicy::IfNotPresent)
    }
}

/// Image of a server that is not a Harbor component, such as PostgreSQL, Redis or MinIO.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSpec {
    /// Full image reference of the server. If unset, the operator's own choice of image is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Image pull policy of the server: `Always`, `Never` or `IfNotPresent`. If unset,
    /// `imageSource.imagePullPolicy` applies, otherwise `IfNotPresent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets with the registry credentials for pulling the server's image. If empty,
    /// `imageSource.imagePullSecrets` applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Named>")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// Registry, tag suffix and pull settings of all images of a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSource {
    /// Registry and path in front of the image names, such as `registry.example.com/goharbor`, instead of the
    /// usual one. If unset, the operator's setting `image-source-repository` applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Suffix appended to the tags of all images. If unset, the operator's setting `image-source-tag-suffix`
    /// applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag_suffix: Option<String>,
    /// Image pull policy of components that set none of their own: `Always`, `Never` or `IfNotPresent`. If
    /// unset, `IfNotPresent` is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets with registry credentials, for components that set no image pull secrets of their own.
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Named>")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
}

/// Reference to a Secret of the same namespace by name.
#[derive(JsonSchema)]
#[allow(dead_code)] // only its schema is used
struct Named {
    /// Name of the Secret, in the same namespace.
    name: Option<String>,
}

/// Serving certificate of a component. Its presence enables TLS.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tls {
    /// Name of the Secret with the certificate, in keys `tls.crt`, `tls.key` and `ca.crt`. Required for the
    /// component to be deployed with TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

impl Tls {
    /// Returns TLS settings with the certificate of the given Secret.
    pub fn of(secret: impl Into<String>) -> Self {
        Self { certificate_ref: Some(secret.into()) }
    }
}

/// Scheme of a component's Service; it determines the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// HTTPS: the component serves with TLS.
    Https,
    /// Plain HTTP without TLS.
    Http,
}

impl Served {
    /// Returns `Https` if TLS settings are given, otherwise `Http`.
    pub fn with(tls: Option<&Tls>) -> Self {
        if tls.is_some() { Self::Https } else { Self::Http }
    }

    /// Returns `https` or `http`: the URL scheme, and the name of the ports.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// Returns the port of the Service: 443 or 80.
    pub const fn service_port(self) -> i32 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }

    /// Returns the container port of components that listen on 8443 or 8080.
    pub const fn container_port(self) -> i32 {
        match self {
            Self::Https => 8443,
            Self::Http => 8080,
        }
    }
}
