//! Fields of embedded Kubernetes values that Kubernetes does not know.
//!
//! The schemas of embedded values are open, so that they stay small. A misspelt field therefore reaches the
//! operator, which would drop it. This module finds such fields: it decodes a value into its type, encodes it
//! again, and looks for what is gone.

use serde::Serialize;
use serde_json::Value;

use super::embedded::{Embed, Embedded};

/// Returns the paths of the fields that the type does not have, below `path`. A value that cannot be decoded
/// has none: the error of decoding is reported elsewhere.
pub(super) fn fields<T>(path: &str, raw: &Value) -> Vec<String>
where
    T: Embed + serde::de::DeserializeOwned + Serialize,
{
    let Ok(embedded) = serde_json::from_value::<Embedded<T>>(raw.clone()) else { return Vec::new() };
    match embedded.typed() {
        Ok(typed) => lost(path, raw, &serde_json::to_value(typed).unwrap_or_default()),
        Err(_) => Vec::new(),
    }
}

/// Returns the paths of `before` that `after` does not have. Null and empty values may be dropped in between.
pub(super) fn lost(path: &str, before: &Value, after: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    compare(path.to_owned(), before, Some(after), &mut paths);
    paths
}

fn compare(path: String, before: &Value, after: Option<&Value>, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Null, _) => {}
        (Value::Object(fields), None) if fields.is_empty() => {}
        (Value::Array(items), None) if items.is_empty() => {}
        (_, None) => paths.push(path),
        (Value::Object(fields), Some(after)) => {
            for (name, value) in fields {
                compare(format!("{path}.{name}"), value, after.get(name), paths);
            }
        }
        (Value::Array(items), Some(after)) => {
            for (index, value) in items.iter().enumerate() {
                compare(format!("{path}[{index}]"), value, after.get(index), paths);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{Affinity, EnvVar, Volume};
    use serde_json::json;

    #[test]
    fn users_n17_unknown_fields_are_found_at_any_depth() {
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpresions": [{"key": "a"}], "matchFields": []}]}}, "podAfinity": {"x": 1}});
        assert_eq!(
            fields::<Affinity>("spec.core.affinity", &affinity),
            [
                "spec.core.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                 .nodeSelectorTerms[0].matchExpresions",
                "spec.core.affinity.podAfinity"
            ]
        );
        let env =
            json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optonal": true}}});
        assert_eq!(fields::<EnvVar>("e", &env), ["e.valueFrom.secretKeyRef.optonal"]);
    }

    #[test]
    fn users_n17_known_fields_are_not_reported_whatever_their_value() {
        let volumes = [
            json!({"name": "a", "emptyDir": {}}),
            json!({"name": "a", "emptyDir": {"sizeLimit": 5, "medium": ""}}),
            json!({"name": "a", "secret": {"secretName": "s", "items": [], "defaultMode": 0, "optional": false}}),
            json!({"name": "a", "persistentVolumeClaim": {"claimName": "c", "readOnly": false}}),
            json!({"name": "a", "configMap": null}),
        ];
        for volume in volumes {
            assert_eq!(fields::<Volume>("v", &volume), Vec::<String>::new(), "{volume}");
        }
        let affinity = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "t", "labelSelector": {"matchLabels": {"my": "label"}}}}]}});
        assert_eq!(fields::<Affinity>("a", &affinity), Vec::<String>::new());
        // A value of another type is reported with its error, not here.
        assert_eq!(fields::<Affinity>("a", &json!({"nodeAffinity": 5, "x": 1})), Vec::<String>::new());
    }
}
