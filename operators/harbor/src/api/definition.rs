//! CustomResourceDefinitions of the Harbor kinds.
//!
//! They are generated from the Rust types and then adjusted to what these kinds have always accepted:
//! optional fields are not nullable (the API server drops nulls, and defaults apply), and no default is
//! empty. Each definition, with both versions, is small enough for `kubectl apply`, which stores all of it in
//! an annotation.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::CustomResourceExt;

use super::alpha;
use super::names::annotation;
use super::schema::{tidy, visit};
use super::{
    ChartMuseum, Core, Exporter, Harbor, HarborCluster, JobService, NotaryServer, NotarySigner, OLD_VERSION,
    Portal, Registry, RegistryController, Trivy,
};

/// Returns the definitions of all kinds.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<ChartMuseum>(),
        definition::<Core>(),
        definition::<Exporter>(),
        definition::<Harbor>(),
        definition::<HarborCluster>(),
        definition::<JobService>(),
        definition::<NotaryServer>(),
        definition::<NotarySigner>(),
        definition::<Portal>(),
        definition::<Registry>(),
        definition::<RegistryController>(),
        definition::<Trivy>(),
    ]
}

/// Returns the definition of one kind with both versions. The conversion webhook is added at installation.
pub fn definition<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut definition = K::crd();
    let kind = definition.spec.names.kind.clone();
    let columns = columns(&kind);
    let mut old = Vec::new();
    for version in &mut definition.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            tidy(schema);
            // For compatibility: an object may lack a spec; it is then not reconciled.
            schema.required = None;
        }
        version.additional_printer_columns = Some(columns.clone());
        old.push(older(version, &kind));
    }
    definition.spec.versions.extend(old);
    definition
}

/// Derives the `v1alpha3` version of a kind from the stored version.
fn older(stored: &CustomResourceDefinitionVersion, kind: &str) -> CustomResourceDefinitionVersion {
    let mut old = CustomResourceDefinitionVersion {
        name: OLD_VERSION.to_owned(),
        served: true,
        storage: false,
        deprecated: Some(true),
        deprecation_warning: Some(format!(
            "goharbor.io/{OLD_VERSION} {kind} is deprecated; use goharbor.io/v1beta1"
        )),
        ..stored.clone()
    };
    if kind == "Registry"
        && let Some(subresources) = &mut old.subresources
    {
        subresources.scale = None;
    }
    if let Some(schema) = old.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
        if let Some(spec) = schema.properties.as_mut().and_then(|fields| fields.get_mut("spec")) {
            alpha::schema(kind, spec);
        }
        // Saves space: `kubectl explain` shows the descriptions of the stored version.
        visit(schema, &mut |schema| schema.description = None);
    }
    old
}

/// Returns the columns of `kubectl get`: those of upstream in their order, so that scripts find them in their
/// place, then what upstream lacks. Every kind shows its version, `Ready`, the reason and its age.
fn columns(kind: &str) -> Vec<CustomResourceColumnDefinition> {
    let column = |name: &str, type_: &str, path: &str, priority| CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: path.to_owned(),
        priority: Some(priority),
        description: None,
        format: None,
    };
    let url = |priority| column("Public URL", "string", ".spec.externalURL", priority);
    let version = column("Version", "string", ".spec.version", 0);
    let age = column("Age", "date", ".metadata.creationTimestamp", 0);
    let failure = column("Failure", "string", r#".status.conditions[?(@.type=="Failed")].message"#, 5);
    let ready = column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#, 0);
    let reason = column("Reason", "string", r#".status.conditions[?(@.type=="Ready")].reason"#, 0);
    match kind {
        "HarborCluster" => vec![
            url(0),
            column("Status", "string", ".status.status", 0),
            version,
            column("Operator Version", "string", ".status.operator.controllerVersion", 30),
            column("Operator Git Commit", "string", ".status.operator.controllerGitCommit", 30),
            ready,
            reason,
            age,
        ],
        "Harbor" => vec![url(5), version, age, failure, ready, reason],
        _ => {
            let path = format!(".metadata.annotations.{}", annotation::VERSION.replace('.', r"\."));
            vec![age, failure, column("Version", "string", &path, 0), ready, reason]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size limit of annotations, in which `kubectl apply` stores the definition.
    const LIMIT: usize = 262_144;

    #[test]
    fn every_definition_fits_into_an_annotation() {
        for definition in definitions() {
            let size = serde_json::to_string(&definition).unwrap().len();
            assert!(size < LIMIT, "{} has {size} bytes", definition.spec.names.kind);
        }
    }

    #[test]
    fn kubectl_get_shows_ready_reason_version_and_age_of_every_kind() {
        for definition in definitions() {
            let kind = definition.spec.names.kind.clone();
            for version in &definition.spec.versions {
                let columns = version.additional_printer_columns.as_deref().unwrap_or_default();
                let shown = |name: &str| {
                    let mut of_that_name = columns.iter().filter(|column| column.name == name);
                    let column = of_that_name.next().unwrap_or_else(|| panic!("{kind} has no column {name}"));
                    assert!(of_that_name.next().is_none(), "{kind} has two columns {name}");
                    assert_eq!(
                        column.priority.unwrap_or_default(),
                        0,
                        "{kind} {name} is not in the default view"
                    );
                    column.json_path.clone()
                };
                assert_eq!(shown("Ready"), r#".status.conditions[?(@.type=="Ready")].status"#);
                assert_eq!(shown("Reason"), r#".status.conditions[?(@.type=="Ready")].reason"#);
                assert_eq!(shown("Age"), ".metadata.creationTimestamp");
                let expected = match &*kind {
                    "Harbor" | "HarborCluster" => ".spec.version",
                    _ => r".metadata.annotations.harbor\.goharbor\.io/version",
                };
                assert_eq!(shown("Version"), expected, "{kind}");
            }
        }
    }

    #[test]
    fn the_columns_of_upstream_keep_their_names_paths_and_order() {
        let age = ("Age", ".metadata.creationTimestamp");
        let failure = ("Failure", r#".status.conditions[?(@.type=="Failed")].message"#);
        let (url, version) = (("Public URL", ".spec.externalURL"), ("Version", ".spec.version"));
        for definition in definitions() {
            let upstream = match &*definition.spec.names.kind {
                "HarborCluster" => vec![
                    url,
                    ("Status", ".status.status"),
                    version,
                    ("Operator Version", ".status.operator.controllerVersion"),
                    ("Operator Git Commit", ".status.operator.controllerGitCommit"),
                ],
                "Harbor" => vec![url, version, age, failure],
                _ => vec![age, failure],
            };
            for served in &definition.spec.versions {
                let columns = served.additional_printer_columns.as_deref().unwrap_or_default();
                let first: Vec<_> = columns
                    .iter()
                    .take(upstream.len())
                    .map(|column| (&*column.name, &*column.json_path))
                    .collect();
                assert_eq!(first, upstream, "{}", definition.spec.names.kind);
            }
        }
    }

    #[test]
    fn both_versions_are_served_and_the_newer_one_is_stored() {
        let definitions = definitions();
        assert_eq!(definitions.len(), 12);
        for definition in definitions {
            let versions: Vec<_> = definition
                .spec
                .versions
                .iter()
                .map(|version| (&*version.name, version.served, version.storage))
                .collect();
            assert_eq!(versions, [("v1beta1", true, true), ("v1alpha3", true, false)]);
        }
    }

    #[test]
    fn only_the_loggers_files_are_nullable() {
        for mut definition in definitions() {
            let kind = definition.spec.names.kind.clone();
            for version in &mut definition.spec.versions {
                let schema = version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
                let mut nullable = 0;
                visit(schema, &mut |schema| nullable += usize::from(schema.nullable == Some(true)));
                assert_eq!(nullable, if kind == "JobService" { 2 } else { 0 }, "{kind}");
            }
        }
    }
}
