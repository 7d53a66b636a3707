//! From a tree of JSON to a type.
//!
//! By way of its text: a decoder is made for each type and for each thing that it can be decoded from, and those of Kubernetes' types
//! are long. Objects come as text; like this, trees need no decoders of their own.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tree is not what a type wants.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

impl From<serde_json::Error> for Unfit {
    fn from(error: serde_json::Error) -> Self {
        let said = error.to_string();
        // Where in a text that nobody has written helps nobody.
        Self(said.rsplit_once(" at line ").map_or(&*said, |(what, _)| what).to_owned())
    }
}

/// The tree as a `T`.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use windlass_runtime::json::typed;
///
/// let map: ConfigMap = typed(&json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))?;
/// assert_eq!(map.metadata.name.as_deref(), Some("a"));
/// let unfit = typed::<ConfigMap>(&json!({"data": 7})).unwrap_err();
/// assert_eq!(unfit.to_string(), "invalid type: integer `7`, expected a map");
/// # Ok::<(), windlass_runtime::json::Unfit>(())
/// ```
pub fn typed<T: DeserializeOwned>(tree: &Value) -> Result<T, Unfit> {
    Ok(serde_json::from_slice(&serde_json::to_vec(tree)?)?)
}
