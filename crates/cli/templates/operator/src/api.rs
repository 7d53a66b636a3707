//! What a user writes: `{{group}}/{{version}}`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a {{kind}} should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "{{group}}",
    version = "{{version}}",
    kind = "{{kind}}",
    singular = "{{singular}}",
    plural = "{{plural}}",
    namespaced,
    doc = "A {{kind}}: some replicas of an image.",
{{if blueprint}}
    status = "windlass::Status",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
{{end}}
{{if reconciler}}
    status = "{{kind}}Status",
    printcolumn(name = "Wanted", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
{{end}}
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct {{kind}}Spec {
    /// The image that is run.
    #[schemars(length(min = 1))]
    pub image: String,
    /// How many replicas.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
{{if blueprint}}
    /// The port that it listens on.
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

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct {{kind}}Status {
    /// How many replicas are available.
    #[serde(default)]
    pub available_replicas: i32,
}
{{end}}
