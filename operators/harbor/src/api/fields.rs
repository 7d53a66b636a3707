//! Rules for fields by their name, the same in all kinds.
//!
//! A field such as `storageClassName` or `passwordRef` means the same wherever it is. This module walks a
//! spec and checks each field by the rule for its name: sizes, quantities, ports, names, hosts, images, and
//! the values of Kubernetes types, whose schemas are open.

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, ResourceRequirements, Toleration, TopologySpreadConstraint, Volume, VolumeMount,
};
use serde_json::{Map, Value};
use windlass_runtime::webhook::Findings;

use super::embedded::ClaimTemplate;
use super::syntax::{self, Fault};
use super::unknown;

/// Rule for the value of a field.
#[derive(Clone, Copy)]
enum Rule {
    /// A text that a function checks. An empty text is an unset field.
    Text(fn(&str) -> Result<(), Fault>),
    /// A list of such texts.
    Texts(fn(&str) -> Result<(), Fault>),
    /// One of these words, or nothing.
    Word(&'static [&'static str]),
    /// A list of these words.
    Words(&'static [&'static str]),
    /// The number of a port.
    Port,
    /// A number of servers, at least one.
    Servers,
    /// Labels of pods, or a node selector.
    Labels,
    /// Annotations with any values.
    Annotations,
    /// A list of references to objects by name.
    References,
    /// A value of a Kubernetes type, or a list of them.
    Kubernetes(fn(&str, &Value, &mut Findings)),
    /// A map whose keys belong to the user: they are not fields.
    Free,
}

const MODES: &[&str] = &["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];

/// Returns the rule for a field, by its name and the path of its parent.
fn rule(parent: &str, name: &str) -> Option<Rule> {
    Some(match name {
        "storage" => Rule::Text(|text| syntax::size(text).map(drop)),
        "storageClassName" | "serviceAccountName" | "priorityClassName" | "ingressClassName"
        | "claimName" => Rule::Text(syntax::name),
        "name" if parent.ends_with(".tokenIssuer") => Rule::Text(syntax::name),
        "host" if parent.ends_with(".ingress") => Rule::Text(syntax::ingress_host),
        "host" => Rule::Text(syntax::host),
        "image" | "dbRepository" | "javaDBRepository" => Rule::Text(syntax::image),
        "repository" if parent.ends_with(".imageSource") => Rule::Text(syntax::image),
        "url" | "uri" | "URL" | "adapterURL" | "controllerURL" | "externalEndpoint" | "httpProxy"
        | "httpsProxy" => Rule::Text(syntax::url),
        "port" | "httpNodePort" | "httpsNodePort" => Rule::Port,
        "replicas" if is_delegated(parent) => Rule::Servers,
        "loadBalancerSourceRanges" => Rule::Texts(syntax::cidr),
        "accessModes" => Rule::Words(MODES),
        "severities" => Rule::Words(&["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"]),
        "vulnerabilityTypes" => Rule::Words(&["os", "library"]),
        "updateStrategyType" => Rule::Word(&["RollingUpdate", "Recreate"]),
        "nodeSelector" | "templateLabels" => Rule::Labels,
        "annotations" | "templateAnnotations" => Rule::Annotations,
        "imagePullSecrets" => Rule::References,
        "attributes" | "parameters" | "headers" | "fields" | "reporting" => Rule::Free,
        "affinity" => Rule::Kubernetes(known::<Affinity>),
        "topologySpreadConstraints" => Rule::Kubernetes(known::<TopologySpreadConstraint>),
        "tolerations" => Rule::Kubernetes(toleration),
        "resources" => Rule::Kubernetes(resources),
        "extraEnv" => Rule::Kubernetes(variable),
        "extraVolumes" => Rule::Kubernetes(volume),
        "volumeSource" | "volume" => Rule::Kubernetes(unnamed_volume),
        "extraVolumeMounts" => Rule::Kubernetes(mount),
        "volumeClaimTemplate" => Rule::Kubernetes(known::<ClaimTemplate>),
        _ if name.ends_with("Refs") => Rule::Texts(syntax::name),
        _ if name.ends_with("Ref") => Rule::Text(syntax::name),
        _ => return None,
    })
}

/// Returns true for servers that other operators run, whose numbers have no minimum in the schema.
fn is_delegated(parent: &str) -> bool {
    ["redisFailover.server", "redisFailover.sentinel", "zlandoPostgreSql"]
        .iter()
        .any(|end| parent.ends_with(end))
}

/// Reports the faults in all fields below `path`.
pub(super) fn check(path: &str, value: &Value, found: &mut Findings) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = format!("{path}.{name}");
                match rule(path, name) {
                    Some(rule) => rule.check(&at, value, found),
                    None => check(&at, value, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(&format!("{path}[{index}]"), item, found);
            }
        }
        _ => {}
    }
}

impl Rule {
    fn check(self, path: &str, value: &Value, found: &mut Findings) {
        match (self, value) {
            (Self::Text(check), Value::String(text)) => text_of(path, text, check, found),
            (Self::Texts(check), Value::Array(items)) => {
                for (path, item) in indexed(path, items) {
                    text_of(&path, item.as_str().unwrap_or_default(), check, found);
                }
            }
            (Self::Word(words), Value::String(word)) => word_of(path, word, words, found),
            (Self::Words(words), Value::Array(items)) => {
                for (path, item) in indexed(path, items) {
                    word_of(&path, item.as_str().unwrap_or_default(), words, found);
                }
            }
            (Self::Port, Value::Number(number)) => {
                if let Err(fault) = syntax::port(number.as_i64().unwrap_or_default()) {
                    found.invalid(path, number, fault);
                }
            }
            (Self::Servers, Value::Number(number)) if number.as_i64().is_none_or(|number| number < 1) => {
                found.invalid(path, number, "there must be at least one server: write 1 or more");
            }
            (Self::Labels, Value::Object(labels)) => {
                keys(path, labels, found);
                for (key, value) in labels {
                    let text = value.as_str().unwrap_or_default();
                    text_of(&format!("{path}[{key}]"), text, syntax::label_value, found);
                }
            }
            (Self::Annotations, Value::Object(annotations)) => keys(path, annotations, found),
            (Self::References, Value::Array(items)) => {
                for (path, item) in indexed(path, items) {
                    text_of(&format!("{path}.name"), text_at(item, "name"), syntax::name, found);
                }
            }
            (Self::Kubernetes(check), Value::Array(items)) => {
                for (path, item) in indexed(path, items) {
                    check(&path, item, found);
                }
            }
            (Self::Kubernetes(check), value @ Value::Object(_)) => check(path, value, found),
            (Self::Free | Self::Servers, _) => {}
            // Another field of this name: the schema has checked its type.
            (_, value) => check(path, value, found),
        }
    }
}

fn indexed<'a>(path: &'a str, items: &'a [Value]) -> impl Iterator<Item = (String, &'a Value)> {
    items.iter().enumerate().map(move |(index, item)| (format!("{path}[{index}]"), item))
}

fn text_at<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn text_of(path: &str, text: &str, check: fn(&str) -> Result<(), Fault>, found: &mut Findings) {
    if text.is_empty() {
        return;
    }
    if let Err(fault) = check(text) {
        // The URL of a proxy may contain a password.
        let shown = text.rsplit_once('@').filter(|_| text.contains("://")).map_or(text, |(_, place)| place);
        found.invalid(path, shown, fault);
    }
}

fn word_of(path: &str, word: &str, words: &[&str], found: &mut Findings) {
    if !word.is_empty() && !words.contains(&word) {
        found.invalid(path, word, format!("it is not a value of this field: write {}", words.join(", ")));
    }
}

fn keys(path: &str, map: &Map<String, Value>, found: &mut Findings) {
    for key in map.keys() {
        if let Err(fault) = syntax::key(key) {
            found.invalid(path, key, fault);
        }
    }
}

/// Reports unknown fields and bad quantities in a value of a Kubernetes type.
fn known<T>(path: &str, value: &Value, found: &mut Findings)
where
    T: super::embedded::Embed + serde::de::DeserializeOwned + serde::Serialize,
{
    report_unknown(&unknown::fields::<T>(path, value), found);
    quantities(path, value, found);
}

fn report_unknown(paths: &[String], found: &mut Findings) {
    for path in paths {
        // The value is not shown: it may be that of a misspelt `value` of an environment variable.
        found.forbidden(path, "Kubernetes does not know this field: correct its spelling, or remove it");
    }
}

/// Reports bad quantities below `path`: in requests and limits, and in the sizes of volumes.
fn quantities(path: &str, value: &Value, found: &mut Findings) {
    let Value::Object(fields) = value else {
        if let Value::Array(items) = value {
            indexed(path, items).for_each(|(path, item)| quantities(&path, item, found));
        }
        return;
    };
    for (name, value) in fields {
        let at = format!("{path}.{name}");
        match (name.as_str(), value) {
            ("requests" | "limits", Value::Object(amounts)) => {
                for (resource, amount) in amounts {
                    quantity(&format!("{at}.{resource}"), amount, found);
                }
            }
            ("sizeLimit" | "divisor", amount) => quantity(&at, amount, found),
            _ => quantities(&at, value, found),
        }
    }
}

fn quantity(path: &str, amount: &Value, found: &mut Findings) {
    match amount_of(amount) {
        Some(Ok(..0)) => found.invalid(path, amount, "an amount cannot be negative: write 0 or more"),
        Some(Err(fault)) => found.invalid(path, amount, fault),
        Some(Ok(_)) | None => {}
    }
}

fn amount_of(amount: &Value) -> Option<Result<i128, Fault>> {
    match amount {
        Value::String(text) => Some(syntax::quantity(text)),
        Value::Number(number) => Some(syntax::quantity(&number.to_string())),
        _ => None,
    }
}

fn resources(path: &str, value: &Value, found: &mut Findings) {
    known::<ResourceRequirements>(path, value, found);
    if let Some(claims) =
        value.get("claims").filter(|claims| claims.as_array().is_some_and(|all| !all.is_empty()))
    {
        let remedy = "the pods have no resourceClaims that it could name: remove it";
        found.invalid(format!("{path}.claims"), claims, remedy);
    }
    let (Some(Value::Object(requests)), Some(limits)) = (value.get("requests"), value.get("limits")) else {
        return;
    };
    for (resource, request) in requests {
        let limit = limits.get(resource);
        if let (Some(Ok(asked)), Some(Some(Ok(most)))) = (amount_of(request), limit.map(amount_of))
            && asked > most
        {
            let remedy = format!(
                "it is above limits.{resource}, which is {}: lower the request, or raise the limit",
                limit.unwrap_or(&Value::Null)
            );
            found.invalid(format!("{path}.requests.{resource}"), request, remedy);
        }
    }
}

fn toleration(path: &str, value: &Value, found: &mut Findings) {
    known::<Toleration>(path, value, found);
    let of = |field: &str| text_at(value, field);
    word_of(&format!("{path}.operator"), of("operator"), &["Exists", "Equal", "Lt", "Gt"], found);
    word_of(&format!("{path}.effect"), of("effect"), &["NoSchedule", "PreferNoSchedule", "NoExecute"], found);
    text_of(&format!("{path}.key"), of("key"), syntax::key, found);
    if of("operator") == "Exists" && !of("value").is_empty() {
        let remedy = "the operator Exists compares no value: remove it, or use the operator Equal";
        found.invalid(format!("{path}.value"), of("value"), remedy);
    }
    if of("key").is_empty() && of("operator") != "Exists" {
        found
            .required(format!("{path}.key"), "set the key of the taint, or the operator Exists for all keys");
    }
    if let Some(seconds) = value.get("tolerationSeconds").filter(|seconds| !seconds.is_null())
        && of("effect") != "NoExecute"
    {
        let remedy =
            "only taints with the effect NoExecute evict pods: set effect to NoExecute, or remove it";
        found.invalid(format!("{path}.tolerationSeconds"), seconds, remedy);
    }
}

fn variable(path: &str, value: &Value, found: &mut Findings) {
    known::<EnvVar>(path, value, found);
    let name = text_at(value, "name");
    if name.is_empty() {
        found.required(format!("{path}.name"), "set the name of the variable");
    }
    text_of(&format!("{path}.name"), name, syntax::env_name, found);
    if value.get("valueFrom").is_some_and(Value::is_object) && !text_at(value, "value").is_empty() {
        found.forbidden(format!("{path}.valueFrom"), "value is set too: keep one of them");
    }
}

fn volume(path: &str, value: &Value, found: &mut Findings) {
    let name = text_at(value, "name");
    if name.is_empty() {
        found.required(format!("{path}.name"), "set the name of the volume");
    }
    text_of(&format!("{path}.name"), name, syntax::label_name, found);
    unnamed_volume(path, value, found);
}

fn unnamed_volume(path: &str, value: &Value, found: &mut Findings) {
    known::<Volume>(path, value, found);
    let claim = value.get("persistentVolumeClaim").map_or("", |claim| text_at(claim, "claimName"));
    text_of(&format!("{path}.persistentVolumeClaim.claimName"), claim, syntax::name, found);
}

fn mount(path: &str, value: &Value, found: &mut Findings) {
    known::<VolumeMount>(path, value, found);
    for (field, remedy) in
        [("name", "set the name of a volume of the pod"), ("mountPath", "set the path in the container")]
    {
        if text_at(value, field).is_empty() {
            found.required(format!("{path}.{field}"), remedy);
        }
    }
    let place = text_at(value, "mountPath");
    if place.contains(':') {
        found.invalid(format!("{path}.mountPath"), place, "a path in a container has no ':': remove it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(spec: &Value) -> String {
        let mut found = Findings::default();
        check("spec", spec, &mut found);
        if found.is_fine() { String::new() } else { format!("{found:?}") }
    }

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn users_n13_bad_values_are_refused_with_field_value_and_remedy() {
        let core = |field: &str, value: Value| json!({"core": {field: value}});
        let cases = [
            (
                json!({"database": {"spec": {"builtIn": {"storage": "ten gigs"}}}}),
                "spec.database.spec.builtIn.storage",
                "10Gi",
            ),
            (
                json!({"storage": {"spec": {"builtIn": {"storage": "0"}}}}),
                "spec.storage.spec.builtIn.storage",
                "above zero",
            ),
            (
                json!({"cache": {"spec": {"builtIn": {"storageClassName": "Fast SSD"}}}}),
                "builtIn.storageClassName",
                "lower-case",
            ),
            (
                json!({"storage": {"spec": {"builtIn": {"accessModes": ["Always"]}}}}),
                "accessModes[0]",
                "ReadWriteMany",
            ),
            (
                json!({"cache": {"spec": {"redis": {"host": "http://redis", "port": 6379}}}}),
                "redis.host",
                "without scheme",
            ),
            (json!({"redis": {"host": "redis", "port": 70000}}), "spec.redis.port", "65535"),
            (json!({"redis": {"passwordRef": "My_Secret"}}), "spec.redis.passwordRef", "lower-case"),
            (
                json!({"core": {"certificateRefs": ["ok", "Not ok"]}}),
                "spec.core.certificateRefs[1]",
                "lower-case",
            ),
            (
                json!({"database": {"hosts": [{"host": "db"}, {"host": "d b"}]}}),
                "spec.database.hosts[1].host",
                "host name",
            ),
            (
                json!({"expose": {"core": {"ingress": {"host": "https://h"}}}}),
                "spec.expose.core.ingress.host",
                "lower case",
            ),
            (json!({"proxy": {"httpProxy": "http://u:secret@a b"}}), "spec.proxy.httpProxy", "http://host"),
            (json!({"updateStrategyType": "Sometimes"}), "spec.updateStrategyType", "Recreate"),
            (json!({"imagePullSecrets": [{"name": "a b"}]}), "spec.imagePullSecrets[0].name", "lower-case"),
            (
                json!({"database": {"spec": {"zlandoPostgreSql": {"replicas": 0}}}}),
                "zlandoPostgreSql.replicas",
                "at least one",
            ),
            (core("image", json!("Core image")), "spec.core.image", "lower case"),
            (core("nodeSelector", json!({"a b": "c"})), "spec.core.nodeSelector", "key of a label"),
            (core("templateLabels", json!({"a": "b c"})), "spec.core.templateLabels[a]", "value of a label"),
            (
                core("templateAnnotations", json!({"a b": "any value"})),
                "spec.core.templateAnnotations",
                "annotation",
            ),
            (
                core("resources", json!({"limits": {"memory": "lots"}})),
                "spec.core.resources.limits.memory",
                "10Gi",
            ),
            (
                core("resources", json!({"limits": {"cpu": "-1"}})),
                "spec.core.resources.limits.cpu",
                "negative",
            ),
            (
                core("resources", json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}})),
                "spec.core.resources.requests.memory",
                "above limits.memory",
            ),
            (
                core("resources", json!({"claims": [{"name": "gpu"}]})),
                "spec.core.resources.claims",
                "remove it",
            ),
            (
                core("tolerations", json!([{"key": "a", "effect": "Never"}])),
                "spec.core.tolerations[0].effect",
                "NoExecute",
            ),
            (
                core("tolerations", json!([{"operator": "Exists", "value": "x"}])),
                "tolerations[0].value",
                "Equal",
            ),
            (
                core("extraEnv", json!([{"name": "A=B"}])),
                "spec.core.extraEnv[0].name",
                "environment variable",
            ),
            (
                core("extraVolumes", json!([{"name": "A", "emptyDir": {}}])),
                "spec.core.extraVolumes[0].name",
                "DNS label",
            ),
            (
                core("extraVolumes", json!([{"name": "a", "emptyDir": {"sizeLimit": "big"}}])),
                "spec.core.extraVolumes[0].emptyDir.sizeLimit",
                "quantity",
            ),
            (
                core("extraVolumeMounts", json!([{"name": "a"}])),
                "spec.core.extraVolumeMounts[0].mountPath",
                "set the path",
            ),
            (
                json!({"minIO": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "x"}}}}}}),
                "volumeClaimTemplate.spec.resources.requests.storage",
                "quantity",
            ),
        ];
        for (spec, field, remedy) in cases {
            let found = faults(&spec);
            assert!(found.contains(field) && found.contains(remedy), "{field} {remedy}: {found}");
            assert!(!found.contains("secret"), "a password is not shown: {found}");
        }
    }

    #[test]
    fn users_n13_good_values_are_accepted() {
        let spec = json!({
            "storage": {"spec": {"builtIn": {
                "storage": "1.5Ti", "storageClassName": "", "accessModes": ["ReadWriteMany"]}}},
            "cache": {"spec": {"redis": {"host": "a:26379, b:26379", "port": 26379, "passwordRef": "redis"}}},
            "expose": {"core": {"ingress": {"host": "*.example.com", "annotations": {"a.b/c": "any: value"}}}},
            "proxy": {"httpProxy": "http://u:p@proxy:3128", "noProxy": ["10.0.0.0/8"]},
            "updateStrategyType": "RollingUpdate",
            "trace": {"attributes": {"host": "not a field", "port": "x"}},
            "core": {
                "image": "registry.example.com:5000/goharbor/harbor-core@sha256:0a",
                "nodeSelector": {"kubernetes.io/os": ""},
                "resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": "500m"}},
                "tolerations": [{"operator": "Exists"}, {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}],
                "extraEnv": [
                    {"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                "extraVolumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}],
                "extraVolumeMounts": [{"name": "a", "mountPath": "/a"}],
            },
        });
        assert_eq!(faults(&spec), "");
    }

    #[test]
    fn users_n17_unknown_fields_of_kubernetes_types_are_refused_without_their_value() {
        let spec = json!({"core": {
            "extraEnv": [{"name": "A", "vlaue": "hidden"}],
            "affinity": {"podAfinity": {"x": 1}},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "minDomain": 2}],
        }, "storage": {"cache": {"volumeSource": {"emptyDirr": {"a": "b"}}}}});
        let found = faults(&spec);
        for path in [
            "spec.core.extraEnv[0].vlaue",
            "spec.core.affinity.podAfinity",
            "spec.core.topologySpreadConstraints[0].minDomain",
            "spec.storage.cache.volumeSource.emptyDirr",
        ] {
            assert!(found.contains(path), "{path} in {found}");
        }
        assert!(!found.contains("hidden"), "{found}");
    }
}
