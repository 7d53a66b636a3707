//! The {{kind}} kind: spec and status of `{{group}}/{{version}}`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Desired state of a {{kind}}.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "{{group}}",
    version = "{{version}}",
    kind = "{{kind}}",
    singular = "{{singular}}",
    plural = "{{plural}}",
    namespaced,
    doc = "{{kind}} runs replicas of a container image.",
{{if blueprint}}
    status = "windlass::Status",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
{{end}}
{{if reconciler}}
    status = "{{kind}}Status",
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
{{end}}
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct {{kind}}Spec {
    /// Container image, such as `nginx:1.29`. Required.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Number of pods, 0 to 100. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
{{if blueprint}}
    /// Port that the container listens on, 1 to 65535. Default: 80.
    #[serde(default = "http")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
{{end}}
}

fn one() -> i32 {
    1
}
{{if blueprint}}

fn http() -> i32 {
    80
}
{{end}}
{{if reconciler}}

/// Observed state of a {{kind}}.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct {{kind}}Status {
    /// Number of pods that are available.
    #[serde(default)]
    pub available_replicas: i32,
}
{{end}}
