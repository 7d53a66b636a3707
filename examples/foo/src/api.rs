//! What a user writes: `samplecontroller.k8s.io/v1alpha1`, field by field as the Kubernetes project's sample controller has it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Foo should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    doc = "Foo is a Deployment by another name.",
    status = "FooStatus",
    // Groups below k8s.io are the project's: the API server takes a definition there only with a word on its standing.
    annotation("api-approved.kubernetes.io", "unapproved, an example")
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deployment_name: String,
    /// How many replicas; whatever the Deployment has, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// How many replicas of the Deployment are available.
    #[serde(default)]
    pub available_replicas: i32,
}
