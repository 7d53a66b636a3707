//! Conversion of JSON values to types.
//!
//! The value is converted by way of its text: a decoder is compiled for each type and each input format, and
//! the decoders of Kubernetes' types are long. Objects are decoded from text anyway; like this, values need
//! no decoders of their own.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A JSON value does not fit a type.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

impl From<serde_json::Error> for Unfit {
    fn from(error: serde_json::Error) -> Self {
        let message = error.to_string();
        // The position refers to a text that nobody has written, so it is left out.
        Self(message.rsplit_once(" at line ").map_or(&*message, |(what, _)| what).to_owned())
    }
}

/// Converts a JSON value to a `T`.
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
