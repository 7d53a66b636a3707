//! RBAC: exactly the rights that the parts need, in the namespaces in which they need them.

use k8s_openapi::api::rbac::v1::Role;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass_runtime::access::{Access, Entry};
use windlass_runtime::key::ObjectKey;

use super::{Declared, Install, Reach, labels};
use crate::operator::Operator;
use crate::webhook_names::WebhookNames;

/// Returns the ServiceAccount, its roles and their bindings.
pub(super) fn rights(
    operator: &Operator,
    install: &Install,
    declared: &Declared,
) -> Result<Vec<Value>, serde_json::Error> {
    let mut access = declared.access.clone();
    if !declared.hooks.is_empty() || !declared.converted.is_empty() {
        let names = WebhookNames::of(operator, &install.namespace);
        let targets = names.targets(&declared.hooks, &declared.converted);
        let secret = ObjectKey::namespaced(&*install.namespace, &*names.secret);
        access = access.certificates(&secret).injects(&targets);
    }
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": operator.name, "namespace": install.namespace, "labels": labels(operator)},
    });
    let cluster_name = operator.cluster_name(&install.namespace);
    let (cluster, local) = match install.reach {
        Reach::Cluster => {
            // Rights to objects of one namespace are granted in that namespace only.
            let (local, wide): (Vec<Entry>, Vec<Entry>) =
                access.entries().iter().cloned().partition(|entry| entry.namespace.is_some());
            let of = |entries: Vec<Entry>| entries.into_iter().fold(Access::none(), Access::with);
            let wide = of(wide);
            let role = (!wide.entries().is_empty()).then(|| wide.cluster_role(&cluster_name));
            (role, of(local).roles(operator.name, [""; 0]).1)
        }
        Reach::OwnNamespace | Reach::Namespaces(_) => {
            let (role, roles) = access.roles(operator.name, install.watched());
            let named = role.map(|mut role| {
                role.metadata.name = Some(cluster_name.clone());
                role
            });
            (named, roles)
        }
    };
    let mut objects = vec![account];
    if let Some(role) = cluster {
        objects.push(labelled(operator, serde_json::to_value(role)?));
        objects.push(binding(operator, install, "ClusterRole", &cluster_name, None));
    }
    for role in local {
        objects.extend(bound(operator, install, operator.name, role)?);
    }
    Ok(objects)
}

/// Returns the role for leader election, separate from the others: an installation with one replica need not
/// grant it.
pub(super) fn election(operator: &Operator, install: &Install) -> Result<Vec<Value>, serde_json::Error> {
    let lease = ObjectKey::namespaced(&*install.namespace, operator.name);
    let name = format!("{}-leader-election", operator.name);
    let (_, roles) = Access::none().elects(&lease).roles(&name, [""; 0]);
    let mut objects = Vec::new();
    for role in roles {
        objects.extend(bound(operator, install, &name, role)?);
    }
    Ok(objects)
}

/// Returns a role and its binding.
pub(super) fn bound(
    operator: &Operator,
    install: &Install,
    name: &str,
    role: Role,
) -> Result<[Value; 2], serde_json::Error> {
    let binding = binding(operator, install, "Role", name, role.metadata.namespace.as_deref());
    Ok([labelled(operator, serde_json::to_value(role)?), binding])
}

/// Returns the binding of a role to the operator's account.
pub(super) fn binding(
    operator: &Operator,
    install: &Install,
    kind: &str,
    name: &str,
    namespace: Option<&str>,
) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"),
        "metadata": {"name": name, "namespace": namespace, "labels": labels(operator)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": operator.name, "namespace": install.namespace}],
    })
}

pub(super) fn labelled(operator: &Operator, mut object: Value) -> Value {
    object["metadata"]["labels"] = labels(operator);
    object
}

/// The roles of users for the kinds that the operator defines, aggregated to the cluster's own `view`, `edit`
/// and `admin`.
pub(super) fn for_users(operator: &Operator, install: &Install) -> Vec<Value> {
    if operator.definitions().is_empty() {
        return Vec::new();
    }
    let role = |verb: &str, into: &[&str], verbs: &[&str], subresources: &[&str]| {
        let rule = |definition: &CustomResourceDefinition| {
            let plural = &definition.spec.names.plural;
            let below = subresources.iter().filter(|below| has_subresource(definition, below));
            let resources: Vec<String> =
                [plural.clone()].into_iter().chain(below.map(|below| format!("{plural}/{below}"))).collect();
            json!({"apiGroups": [definition.spec.group], "resources": resources, "verbs": verbs})
        };
        let mut labels = labels(operator);
        for role in into {
            labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] = "true".into();
        }
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("{}.{verb}", operator.cluster_name(&install.namespace)), "labels": labels},
            "rules": operator.definitions().iter().map(rule).collect::<Vec<_>>(),
        })
    };
    let write = ["create", "update", "patch", "delete", "deletecollection"];
    vec![
        role("edit", &["admin", "edit"], &write, &["scale"]),
        role("view", &["admin", "edit", "view"], &["get", "list", "watch"], &["scale", "status"]),
    ]
}

fn has_subresource(definition: &CustomResourceDefinition, name: &str) -> bool {
    definition.spec.versions.iter().filter_map(|version| version.subresources.as_ref()).any(
        |has| match name {
            "scale" => has.scale.is_some(),
            "status" => has.status.is_some(),
            _ => false,
        },
    )
}
