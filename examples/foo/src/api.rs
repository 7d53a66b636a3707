//! The Foo kind: `samplecontroller.k8s.io/v1alpha1`, with the same fields as in the sample controller of the
//! Kubernetes project.
#![allow(clippy::duplicated_attributes)] // columns may be of the same type

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Desired state of a Foo.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    doc = "Foo manages one Deployment, like the sample controller of the Kubernetes project.",
    status = "FooStatus",
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deploymentName"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // Groups below k8s.io belong to the Kubernetes project: the API server requires this annotation.
    annotation("api-approved.kubernetes.io", "unapproved, an example")
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// Name of the Deployment that the Foo owns, in the same namespace. If empty, nothing is created.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub deployment_name: String,
    /// Number of replicas of the Deployment, 1 to 10. If unset, the Deployment's own number is left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
}

/// Observed state of a Foo.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// Number of available replicas of the Deployment.
    #[serde(default)]
    pub available_replicas: i32,
}
