//! The state of an owner, as its status tells it.

use serde_json::Value;

/// The state of an owner with regard to its present spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReport {
    /// True if the status is about the present spec.
    pub current: bool,
    /// True if the owner is ready.
    pub ready: bool,
    /// True if the operator has given up until something changes.
    pub failed: bool,
    /// The messages of the status.
    pub message: String,
}

/// Reads the conditions of an owner: `Ready` says that it is ready, `Failed` or `Stalled` that it will not
/// become so, and the observed generation that they are about the present spec.
pub(super) fn conditions(owner: &Value) -> OwnerReport {
    let status = &owner["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is = |kind: &str| conditions.iter().any(|one| one["type"] == kind && one["status"] == "True");
    let generation = &owner["metadata"]["generation"];
    let ready = conditions.iter().find(|one| one["type"] == "Ready");
    let observed =
        ready.and_then(|ready| ready.get("observedGeneration")).or_else(|| status.get("observedGeneration"));
    let told = conditions.iter().filter(|one| one["type"] != "Ready" || one["status"] != "True");
    let mut messages: Vec<&str> =
        told.filter_map(|one| one["message"].as_str()).filter(|message| !message.is_empty()).collect();
    messages.dedup();
    OwnerReport {
        current: ready.is_some() && observed.is_none_or(|observed| observed == generation),
        ready: is("Ready"),
        failed: is("Failed") || is("Stalled"),
        message: messages.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner(conditions: &Value) -> Value {
        json!({"metadata": {"generation": 2}, "status": {"conditions": conditions}})
    }

    #[test]
    fn the_conditions_tell_the_state_of_the_present_spec() {
        let ready =
            json!([{"type": "Ready", "status": "True", "observedGeneration": 2, "message": "all is well"}]);
        let expected = OwnerReport { current: true, ready: true, ..OwnerReport::default() };
        assert_eq!(conditions(&owner(&ready)), expected);
        let old = json!([{"type": "Ready", "status": "True", "observedGeneration": 1}]);
        assert!(!conditions(&owner(&old)).current);
        let failed = json!([
            {"type": "Ready", "status": "False", "observedGeneration": 2, "message": "size is wrong"},
            {"type": "Failed", "status": "True", "message": "size is wrong"},
        ]);
        let report = conditions(&owner(&failed));
        assert_eq!((report.ready, report.failed, &*report.message), (false, true, "size is wrong"));
        assert_eq!(conditions(&json!({})), OwnerReport::default());
    }
}
