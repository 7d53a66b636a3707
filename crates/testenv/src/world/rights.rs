//! The rights that manifests grant, compared with those that an operator uses.
//!
//! Manifests are given as files: pairs of a name (`rbac.yaml`) and its text.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use crate::audit::Requests;
use crate::error::{Error, Result};
use crate::user::Rules;

/// The objects in one of the files.
pub fn file<'n, 't>(files: impl IntoIterator<Item = (&'n str, &'t str)>, name: &str) -> Result<Vec<Value>> {
    let found = files.into_iter().find(|(file, _)| *file == name);
    let (_, text) = found.ok_or_else(|| Error::Manifest(format!("no {name}")))?;
    objects(text)
}

/// The objects in a text of YAML documents.
pub fn objects(text: &str) -> Result<Vec<Value>> {
    serde_saphyr::from_multiple(text).map_err(|error| Error::Manifest(error.to_string()))
}

/// The rights that `rbac.yaml` of an installation in one namespace grants, for a test's user there.
pub fn granted<'n, 't>(files: impl IntoIterator<Item = (&'n str, &'t str)>) -> Result<Rules> {
    let mut granted = Rules::default();
    for object in file(files, "rbac.yaml")? {
        let rules: Vec<PolicyRule> = serde_json::from_value(object["rules"].clone()).unwrap_or_default();
        for rule in rules {
            granted = match object["kind"].as_str() {
                Some("ClusterRole") => granted.cluster_wide(rule),
                Some("Role") => granted.in_namespace(rule),
                other => return Err(Error::Manifest(format!("{other:?} has rules"))),
            };
        }
    }
    Ok(granted)
}

/// The requests that were refused for lack of a right: forbidden, and never allowed.
///
/// Forbidden for a while is something else: the API server's admission of `blockOwnerDeletion` looks kinds up
/// in a list that it renews every 30 seconds, and until then an owner of a kind that was just defined is
/// forbidden to everybody.
#[must_use]
pub fn missing(requests: &Requests) -> Requests {
    requests.code(403).filter(|refused| {
        !requests.iter().any(|other| {
            other.code < 300
                && (&other.verb, &other.resource, &other.subresource)
                    == (&refused.verb, &refused.resource, &refused.subresource)
        })
    })
}

/// The rights that all manifests together grant and that were not used, one line each.
///
/// Not counted are watches and their lists (they come as three, whichever of them the server takes), the rare
/// patch that counts a series of events up, and finalizers: admission checks that right, and asks for nothing
/// that the audit log has.
pub fn unused(manifests: &str, requests: &Requests) -> Result<Vec<String>> {
    let objects = objects(manifests)?;
    let for_users = |object: &Value| {
        object["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"].is_string()
    };
    let used = |resource: &str, verb: &str| {
        requests.iter().any(|request| {
            let slash = if request.subresource.is_empty() { "" } else { "/" };
            let asked = format!("{}{slash}{}", request.resource, request.subresource);
            // An apply that creates is a patch that needs `create` as well.
            asked == resource && (request.verb == verb || (verb == "create" && request.code == 201))
        })
    };
    let mut unused = Vec::new();
    for rule in objects.iter().filter(|object| !for_users(object)).flat_map(|object| list(&object["rules"])) {
        for resource in list(&rule["resources"]).filter_map(Value::as_str) {
            for verb in list(&rule["verbs"]).filter_map(Value::as_str) {
                let of_a_watch = matches!(verb, "get" | "list" | "watch");
                let rare = resource.ends_with("/finalizers") || (resource == "events" && verb == "patch");
                if !of_a_watch && !rare && !used(resource, verb) {
                    unused.push(format!("{verb} of {resource}"));
                }
            }
        }
    }
    Ok(unused)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RBAC: &str = "
kind: Role
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, patch]}]
---
kind: RoleBinding
subjects: []
---
kind: ClusterRole
rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]
";

    #[test]
    fn rules_are_granted_where_their_roles_are() {
        let granted = granted([("crds.yaml", ""), ("rbac.yaml", RBAC)]).unwrap();
        assert_eq!((granted.namespaced.len(), granted.cluster.len()), (1, 1));
        assert!(super::granted([("crds.yaml", "")]).unwrap_err().to_string().contains("no rbac.yaml"));
    }

    #[test]
    fn a_right_that_nothing_used_is_named() {
        let unused = unused(RBAC, &Requests::default()).unwrap();
        assert_eq!(unused, ["patch of deployments"], "reads belong to watches");
    }
}
