//! The Game kind: spec and status of `myapp.qingwave.github.io/v1`.

#![allow(clippy::duplicated_attributes)] // columns may be of the same type

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
use kube::{CustomResource, CustomResourceExt as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Desired state of a Game.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "myapp.qingwave.github.io",
    version = "v1",
    kind = "Game",
    namespaced,
    doc = "Game is an instance of the 2048 game, reachable under a host name.",
    status = "GameStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "DESIRED", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "CURRENT", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "READY", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    // Last, so that the columns of the original stay where scripts read them.
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason")
)]
pub struct GameSpec {
    /// Number of pods that serve the game. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// Image of the game. Default, filled in by the webhook: `alexwhen/docker-2048`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Host name of the Ingress. Default, filled in by the webhook: `<name>.<namespace>.mygame.io`. It must
    /// not contain `*`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

fn one() -> i32 {
    1
}

/// Observed state of a Game.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GameStatus {
    /// Summary of the state: `Init`, `Running`, `NotReady` or `Failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Desired number of pods, for the scale subresource.
    pub replicas: i32,
    /// Number of pods that are ready.
    pub ready_replicas: i32,
    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Standard fields of a Windlass status.
    #[serde(flatten)]
    pub standard: windlass::Status,
}

/// Summary of the state of a Game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// No object has been created yet.
    Init,
    /// All replicas are ready.
    Running,
    /// Some replicas are not ready.
    NotReady,
    /// Reconciliation failed; see the conditions.
    Failed,
}

impl Game {
    /// Returns the host name: that of the spec, or one made of the name and namespace.
    pub fn host(&self) -> String {
        match self.spec.host.as_str() {
            "" => default_host(&self.name_any(), &self.namespace().unwrap_or_default()),
            host => host.to_owned(),
        }
    }
}

/// Returns the host name of a Game whose spec has none.
pub fn default_host(name: &str, namespace: &str) -> String {
    format!("{name}.{namespace}.mygame.io")
}

/// Returns the CRD. A Game without a spec gets all defaults from the API server.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = Game::crd();
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let Some(schema) = schema else { continue };
        schema.required = None;
        if let Some(spec) = schema.properties.as_mut().and_then(|fields| fields.get_mut("spec")) {
            spec.default = Some(JSON(serde_json::json!({})));
        }
    }
    definition
}
