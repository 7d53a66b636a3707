//! Fields that have no effect, and the reason: they are accepted with a warning.
//!
//! The fields exist because released schemas have them. The table lists paths below `spec`; a rule applies if
//! the field has a value other than its default, and if its condition holds.

use serde_json::Value;
use windlass_runtime::webhook::Findings;

/// A field that has no effect.
struct Ineffective {
    /// Kinds that have the field.
    kinds: &'static [&'static str],
    /// Path of the parent below `spec`, with dots; empty for the spec itself.
    parent: &'static str,
    /// Names of the fields.
    fields: &'static [&'static str],
    /// Reason and remedy, after "has no effect: ".
    why: &'static str,
    /// Condition, given the spec, the name of the field and its value.
    when: fn(&Value, &str, &Value) -> bool,
}

const HARBORS: &[&str] = &["Harbor", "HarborCluster"];
/// Settings of pods that RegistryController does not have, because it runs in the pods of the registry.
const OF_PODS: &[&str] = &[
    "replicas",
    "templateAnnotations",
    "templateLabels",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "priorityClassName",
];
const IN_REGISTRY: &str = "RegistryController runs in the registry's pods: set it at the registry instead";

/// Components that listen on all IP families: their programs have no setting for it.
const ON_ALL_FAMILIES: &[&str] = &[
    "ChartMuseum",
    "Core",
    "Exporter",
    "JobService",
    "NotaryServer",
    "NotarySigner",
    "Registry",
    "RegistryController",
    "Trivy",
];
const AT_ROOT: &str = "this volume is mounted at its root: remove it, or use a claim of its own";

const FIELDS: &[Ineffective] = &[
    Ineffective {
        kinds: HARBORS,
        parent: "registryctl",
        fields: OF_PODS,
        why: IN_REGISTRY,
        when: |spec, field, value| *value != at(spec, "registry", field) && !is_one(field, value),
    },
    Ineffective {
        kinds: &["RegistryController"],
        parent: "",
        fields: OF_PODS,
        why: IN_REGISTRY,
        when: |_, field, value| !is_one(field, value),
    },
    Ineffective {
        kinds: HARBORS,
        parent: "expose.notary",
        fields: &["service"],
        why: "Notary is exposed by an Ingress only: use expose.notary.ingress",
        when: always,
    },
    Ineffective {
        kinds: HARBORS,
        parent: "expose.notary.ingress",
        fields: &["controller"],
        why: "both Ingresses use the controller of expose.core.ingress: set it there",
        when: |spec, field, value| {
            let core = at(spec, "expose.core.ingress", field);
            !core.is_null() && core != *value && *value != "default"
        },
    },
    Ineffective {
        kinds: HARBORS,
        parent: "expose.core.service",
        fields: &["loadBalancerClass", "loadBalancerSourceRanges"],
        why: "only a Service of type LoadBalancer has it: set type to LoadBalancer, or remove it",
        when: |spec, _, _| at(spec, "expose.core.service", "type") != "LoadBalancer",
    },
    Ineffective {
        kinds: HARBORS,
        parent: "expose.core.service",
        fields: &["httpsNodePort"],
        why: "expose.core.tls is unset, so the Service has no https port: set expose.core.tls, or remove it",
        // With type ClusterIP it is refused.
        when: |spec, _, _| at(spec, "expose.core", "tls").is_null(),
    },
    Ineffective {
        kinds: HARBORS,
        parent: "jobservice.storage.scanDataExportsPersistentVolume",
        fields: &["prefix"],
        why: AT_ROOT,
        when: |_, _, value| *value != "",
    },
    Ineffective {
        kinds: HARBORS,
        parent: "trivy.storage.cachePersistentVolume",
        fields: &["prefix"],
        why: AT_ROOT,
        when: |_, _, value| *value != "",
    },
    Ineffective {
        kinds: HARBORS,
        parent: "trivy.storage.reportsPersistentVolume",
        fields: &["prefix"],
        why: AT_ROOT,
        when: |_, _, value| *value != "",
    },
    Ineffective {
        kinds: ON_ALL_FAMILIES,
        parent: "network",
        fields: &["ipFamilies"],
        why: "the component listens on all IP families: remove it; the portal and the nginx of a Harbor use it",
        when: |_, _, value| value.as_array().is_some_and(|families| families.len() == 1),
    },
    Ineffective {
        kinds: &["ChartMuseum"],
        parent: "chart.storage.gcs",
        fields: &["chunksize"],
        why: "ChartMuseum has no such setting: remove it",
        when: always,
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "database.spec.zlandoPostgreSql",
        fields: &["imagePullPolicy", "imagePullSecrets"],
        why: "Zalando's operator decides how images are pulled: configure it there",
        when: |spec, _, _| at(spec, "database", "kind") == "Zlando/PostgreSQL",
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "database.spec.zlandoPostgreSql",
        fields: &["operatorVersion", "connectTimeout", "sslConfig"],
        why: "it is kept for compatibility only: remove it",
        when: |spec, _, _| at(spec, "database", "kind") == "Zlando/PostgreSQL",
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "cache.spec.redisFailover",
        fields: &["operatorVersion"],
        why: "it is kept for compatibility only: remove it",
        when: |spec, _, _| at(spec, "cache", "kind") == "RedisFailover",
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "storage.spec.minIO",
        fields: &["operatorVersion"],
        why: "it is kept for compatibility only: remove it",
        when: |spec, _, value| at(spec, "storage", "kind") == "MinIO" && value != "4.0.6",
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "cache.spec",
        fields: &["redis", "redisFailover", "builtIn"],
        why: "cache.kind selects other settings: remove it, or change cache.kind",
        when: |spec, field, _| field != selected(&at(spec, "cache", "kind")),
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "database.spec",
        fields: &["postgresql", "zlandoPostgreSql", "builtIn"],
        why: "database.kind selects other settings: remove it, or change database.kind",
        when: |spec, field, _| field != selected(&at(spec, "database", "kind")),
    },
    Ineffective {
        kinds: &["HarborCluster"],
        parent: "storage.spec",
        fields: &["minIO", "s3", "swift", "fileSystem", "azure", "gcs", "oss", "builtIn"],
        why: "storage.kind selects other settings: remove it, or change storage.kind",
        when: |spec, field, _| field != selected(&at(spec, "storage", "kind")),
    },
    Ineffective {
        kinds: &["Core"],
        parent: "components.trivy",
        fields: &["url"],
        why: "Core calls the adapter at components.trivy.adapterURL",
        when: |spec, _, value| at(spec, "components.trivy", "adapterURL") != *value,
    },
    Ineffective {
        kinds: &["Core"],
        parent: "components.chartRepository",
        fields: &["absoluteURL"],
        why: "chart.url of the ChartMuseum decides: set it there",
        when: |_, _, value| *value == true,
    },
];

/// Paths of the connection parameters of databases, of which only `sslmode` has an effect.
const PARAMETERS: [(&str, &str); 4] = [
    ("Core", "database"),
    ("Exporter", "database"),
    ("NotaryServer", "storage.postgres"),
    ("NotarySigner", "storage.postgres"),
];

fn always(_: &Value, _: &str, _: &Value) -> bool {
    true
}

/// Returns true for the default number of replicas, which samples write out.
fn is_one(field: &str, value: &Value) -> bool {
    field == "replicas" && *value == 1
}

/// Returns the value of a field, by the path of its parent; null if it is unset.
fn at(spec: &Value, parent: &str, field: &str) -> Value {
    let parent =
        parent.split('.').filter(|name| !name.is_empty()).try_fold(spec, |value, name| value.get(name));
    parent.and_then(|parent| parent.get(field)).cloned().unwrap_or_default()
}

/// Returns the field with the settings of a kind of cache, database or storage.
fn selected(kind: &Value) -> &'static str {
    match kind.as_str().unwrap_or_default() {
        "Redis" => "redis",
        "RedisFailover" => "redisFailover",
        "PostgreSQL" => "postgresql",
        "Zlando/PostgreSQL" => "zlandoPostgreSql",
        "MinIO" => "minIO",
        "S3" => "s3",
        "Swift" => "swift",
        "FileSystem" => "fileSystem",
        "Azure" => "azure",
        "Gcs" => "gcs",
        "Oss" => "oss",
        _ => "builtIn",
    }
}

/// Warns of fields in the spec of an object of this kind that have no effect.
pub(super) fn check(kind: &str, spec: &Value, found: &mut Findings) {
    for rule in FIELDS.iter().filter(|rule| rule.kinds.contains(&kind)) {
        for field in rule.fields {
            let value = at(spec, rule.parent, field);
            if !value.is_null() && (rule.when)(spec, field, &value) {
                let path = ["spec", rule.parent, field].into_iter().filter(|part| !part.is_empty());
                let path = path.collect::<Vec<_>>().join(".");
                found.warn(format!("{path}: has no effect: {}", rule.why));
            }
        }
    }
    for (_, parent) in PARAMETERS.into_iter().filter(|(of, _)| *of == kind) {
        let parameters = at(spec, parent, "parameters");
        for name in
            parameters.as_object().into_iter().flat_map(|all| all.keys()).filter(|name| *name != "sslmode")
        {
            let known = "only sslmode is used: remove it";
            found.warn(format!("spec.{parent}.parameters.{name}: has no effect: {known}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn warnings(kind: &str, spec: &Value) -> String {
        let mut found = Findings::default();
        check(kind, spec, &mut found);
        assert!(found.is_fine(), "warnings only: {found:?}");
        if found == Findings::default() { String::new() } else { format!("{found:?}") }
    }

    /// Fails unless each spec of a kind gives a warning about this field that contains this reason.
    fn assert_warned<const N: usize>(cases: [(&str, Value, &str, &str); N]) {
        for (kind, spec, field, why) in cases {
            let found = warnings(kind, &spec);
            let expected = format!("{field}: has no effect: ");
            assert!(found.contains(&expected) && found.contains(why), "{kind} {expected}: {found}");
        }
    }

    #[test]
    fn users_fields_without_effect_are_accepted_with_a_warning_that_says_why() {
        let database = |field: &str, value: Value| {
            let spec = json!({"zlandoPostgreSql": {field: value}});
            json!({"database": {"kind": "Zlando/PostgreSQL", "spec": spec}})
        };
        let cases = [
            (
                "Harbor",
                json!({"registryctl": {"priorityClassName": "high"}}),
                "spec.registryctl.priorityClassName",
                "at the registry",
            ),
            (
                "Harbor",
                json!({"registryctl": {"replicas": 2}}),
                "spec.registryctl.replicas",
                "registry's pods",
            ),
            (
                "HarborCluster",
                json!({"registryctl": {"affinity": {"a": 1}}, "registry": {}}),
                "spec.registryctl.affinity",
                "registry",
            ),
            (
                "RegistryController",
                json!({"nodeSelector": {"a": "b"}}),
                "spec.nodeSelector",
                "registry's pods",
            ),
            (
                "Harbor",
                json!({"expose": {"notary": {"service": {"type": "NodePort"}}}}),
                "spec.expose.notary.service",
                "Ingress",
            ),
            (
                "Harbor",
                json!({"expose": {"core": {"ingress": {"controller": "default"}}, "notary": {"ingress": {"controller": "contour"}}}}),
                "spec.expose.notary.ingress.controller",
                "expose.core.ingress",
            ),
            (
                "Harbor",
                json!({"expose": {"core": {"service": {"type": "NodePort", "loadBalancerClass": "x"}}}}),
                "spec.expose.core.service.loadBalancerClass",
                "LoadBalancer",
            ),
            (
                "HarborCluster",
                database("imagePullPolicy", json!("Always")),
                "zlandoPostgreSql.imagePullPolicy",
                "Zalando",
            ),
            (
                "HarborCluster",
                database("imagePullSecrets", json!([{"name": "x"}])),
                "zlandoPostgreSql.imagePullSecrets",
                "Zalando",
            ),
            (
                "HarborCluster",
                json!({"cache": {"kind": "BuiltIn", "spec": {"redis": {"host": "x"}}}}),
                "spec.cache.spec.redis",
                "cache.kind",
            ),
            (
                "Core",
                json!({"components": {"trivy": {"url": "http://a", "adapterURL": "http://b"}}}),
                "spec.components.trivy.url",
                "adapterURL",
            ),
            (
                "Core",
                json!({"components": {"chartRepository": {"absoluteURL": true}}}),
                "spec.components.chartRepository.absoluteURL",
                "chart.url",
            ),
            (
                "NotarySigner",
                json!({"storage": {"postgres": {"parameters": {"connect_timeout": "5"}}}}),
                "spec.storage.postgres.parameters.connect_timeout",
                "only sslmode",
            ),
        ];
        assert_warned(cases);
    }

    #[test]
    fn users_fields_without_effect_of_ports_and_volumes_are_accepted_with_a_warning_that_says_why() {
        let cases = [
            (
                "Harbor",
                json!({"expose": {"core": {"service": {"type": "NodePort", "httpsNodePort": 30443}}}}),
                "spec.expose.core.service.httpsNodePort",
                "expose.core.tls",
            ),
            (
                "HarborCluster",
                json!({"jobservice": {"storage": {"scanDataExportsPersistentVolume": {"claimName": "x", "prefix": "p"}}}}),
                "spec.jobservice.storage.scanDataExportsPersistentVolume.prefix",
                "mounted at its root",
            ),
            (
                "Harbor",
                json!({"trivy": {"storage": {"cachePersistentVolume": {"claimName": "x", "prefix": "p"}}}}),
                "spec.trivy.storage.cachePersistentVolume.prefix",
                "mounted at its root",
            ),
            (
                "Harbor",
                json!({"trivy": {"storage": {"reportsPersistentVolume": {"claimName": "x", "prefix": "p"}}}}),
                "spec.trivy.storage.reportsPersistentVolume.prefix",
                "mounted at its root",
            ),
            (
                "ChartMuseum",
                json!({"chart": {"storage": {"gcs": {"bucket": "b", "chunksize": "5242880"}}}}),
                "spec.chart.storage.gcs.chunksize",
                "remove it",
            ),
        ];
        assert_warned(cases);
    }

    #[test]
    fn users_fields_without_effect_include_the_ip_families_of_all_components_but_the_portal() {
        let network = |families: Value| json!({"network": {"ipFamilies": families}});
        for kind in ON_ALL_FAMILIES {
            let found = warnings(kind, &network(json!(["IPv4"])));
            assert!(found.contains("spec.network.ipFamilies: has no effect: "), "{kind}: {found}");
            assert_eq!(warnings(kind, &json!({"network": {}})), "", "{kind}: unset");
            assert_eq!(warnings(kind, &network(json!(["IPv4", "IPv6"]))), "", "{kind}: what it does");
        }
        for kind in ["Portal", "Harbor", "HarborCluster"] {
            assert_eq!(warnings(kind, &network(json!(["IPv4"]))), "", "{kind}");
        }
    }

    #[test]
    fn users_fields_with_an_effect_give_no_warning() {
        let cases = [
            (
                "Harbor",
                json!({
                    "registry": {"nodeSelector": {"a": "b"}, "replicas": 2},
                    "registryctl": {
                        "nodeSelector": {"a": "b"}, "replicas": 2, "image": "x",
                        "resources": {"limits": {"cpu": 1}}},
                    "expose": {
                        "core": {"ingress": {"controller": "contour"}},
                        "notary": {"ingress": {"controller": "contour"}}},
                }),
            ),
            ("Harbor", json!({"registryctl": {"replicas": 1}, "registry": {"replicas": 3}})),
            (
                "Harbor",
                json!({
                    "expose": {"core": {"tls": {}, "service": {
                        "type": "NodePort", "httpNodePort": 30080, "httpsNodePort": 30443}}},
                    "imageChartStorage": {"filesystem": {
                        "registryPersistentVolume": {"claimName": "x", "prefix": "p"},
                        "chartPersistentVolume": {"claimName": "x", "prefix": "q"}}},
                }),
            ),
            (
                "HarborCluster",
                json!({
                    "cache": {"kind": "BuiltIn", "spec": {"builtIn": {}}},
                    "database": {"kind": "PostgreSQL", "spec": {"postgresql": {}}},
                    "storage": {"kind": "MinIO", "spec": {"minIO": {"operatorVersion": "4.0.6"}, "redirect": {}}},
                }),
            ),
            (
                "Core",
                json!({"database": {"parameters": {"sslmode": "disable"}}, "components": {"chartRepository": {"absoluteURL": false}}}),
            ),
        ];
        for (kind, spec) in cases {
            assert_eq!(warnings(kind, &spec), "", "{kind}");
        }
    }
}
