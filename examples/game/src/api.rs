//! What a user writes: `myapp.qingwave.github.io/v1`, and what is said in return.

#![allow(clippy::duplicated_attributes)] // columns may be of the same type

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
use kube::{CustomResource, CustomResourceExt as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Game should be.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "myapp.qingwave.github.io",
    version = "v1",
    kind = "Game",
    namespaced,
    doc = "Game is a 2048 that anybody can play.",
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
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct GameSpec {
    /// How many replicas serve it.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// The image; the webhook fills in the usual one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The host name under which it is played; the webhook makes one of its name and namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

fn one() -> i32 {
    1
}

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GameStatus {
    /// In one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How many replicas there should be.
    pub replicas: i32,
    /// How many are ready to play.
    pub ready_replicas: i32,
    /// Which Pods they are: for those who scale it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// What every kind of Windlass says.
    #[serde(flatten)]
    pub standard: windlass::Status,
}

/// A Game's state in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// Nothing has been done yet.
    Init,
    /// All replicas are ready.
    Running,
    /// Some are not.
    NotReady,
    /// It needs help; the conditions say what for.
    Failed,
}

impl Game {
    /// The host name under which it is played: what its user says, or one of its name and namespace.
    pub fn host(&self) -> String {
        match self.spec.host.as_str() {
            "" => default_host(&self.name_any(), &self.namespace().unwrap_or_default()),
            host => host.to_owned(),
        }
    }
}

/// The host name of a Game that names none.
pub fn default_host(name: &str, namespace: &str) -> String {
    format!("{name}.{namespace}.mygame.io")
}

/// The kind's definition. A Game without a spec is one with all defaults: the API server fills them in.
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
