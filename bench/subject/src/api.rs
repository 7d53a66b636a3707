//! The kind that everything is about, in full and in the shapes that modes keep of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::cache::{OfKind, Shape};
use windlass_runtime::intern::Str;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

/// The desired state of a Widget.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(group = "bench.windlass.dev", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
pub(crate) struct WidgetSpec {
    pub(crate) size: i64,
    pub(crate) color: String,
    #[serde(default)]
    pub(crate) image: String,
    #[serde(default)]
    pub(crate) replicas: i32,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: Vec<Variable>,
    #[serde(default)]
    pub(crate) config: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) notes: String,
}

/// A variable of the environment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The status of a Widget.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub(crate) struct WidgetStatus {
    #[serde(default)]
    pub(crate) ready: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    #[serde(flatten)]
    pub(crate) standard: windlass::Status,
}

/// The fields that a reconcile compares: size, color and readiness.
#[derive(Debug, Deserialize)]
pub(crate) struct NeededWidget {
    metadata: Meta,
    pub(crate) spec: NeededSpec,
    #[serde(default)]
    pub(crate) status: NeededStatus,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NeededSpec {
    pub(crate) size: i64,
    pub(crate) color: Str,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct NeededStatus {
    #[serde(default)]
    pub(crate) ready: bool,
}

impl Shape for NeededWidget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for NeededWidget {
    fn resource() -> ResourceType {
        ResourceType::of::<Widget>()
    }
}

/// The color that a ConfigMap holds.
#[derive(Debug, Deserialize)]
pub(crate) struct NeededConfigMap {
    metadata: Meta,
    #[serde(default)]
    pub(crate) data: NeededData,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct NeededData {
    pub(crate) color: Option<Str>,
}

impl Shape for NeededConfigMap {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for NeededConfigMap {
    fn resource() -> ResourceType {
        ResourceType::of::<ConfigMap>()
    }
}
