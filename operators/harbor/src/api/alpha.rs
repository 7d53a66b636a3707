//! API version `v1alpha3`: `v1beta1` without some fields.
//!
//! One table lists the missing fields; both the schema and the conversion are derived from it. There are no
//! Rust types for this version, because no part of the operator reads it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kube::CustomResourceExt as _;

use super::alpha_cluster::OldHarborCluster;
use super::schema::{at, tidy};

/// Paths of the fields that an S3 backend lacks in `v1alpha3`.
macro_rules! multipart {
    ($($before:literal),*) => {
        [
            &[$($before,)* "multipartcopychunksize"] as &[&str],
            &[$($before,)* "multipartcopymaxconcurrency"],
            &[$($before,)* "multipartcopythresholdsize"],
        ]
    };
}

/// Returns the paths of the spec fields of a kind that `v1alpha3` lacks.
pub(super) fn lacks(kind: &str) -> Vec<&'static [&'static str]> {
    let mut fields: Vec<&[&str]> = vec![&["network"]];
    match kind {
        "Core" => fields.extend([&["trace"] as &[&str], &["cacheLayer"]]),
        "JobService" => fields.extend([
            &["trace"] as &[&str],
            &["metrics"],
            &["storage"],
            &["updateStrategyType"],
            &["cacheLayer"],
        ]),
        "Registry" => {
            fields.extend([&["trace"] as &[&str], &["updateStrategyType"]]);
            fields.extend([
                &["storage", "driver", "azure"] as &[&str],
                &["storage", "driver", "gcs"],
                &["storage", "driver", "oss"],
            ]);
            fields.extend(multipart!("storage", "driver", "s3"));
        }
        "ChartMuseum" => fields.extend([
            &["chart", "storage", "azure"] as &[&str],
            &["chart", "storage", "gcs"],
            &["chart", "storage", "oss"],
        ]),
        "Exporter" => fields.push(&["jobservice"]),
        "Trivy" => fields.extend([
            &["offlineScan"] as &[&str],
            &["timeout"],
            &["update", "dbRepository"],
            &["update", "javaDBRepository"],
        ]),
        "Harbor" | "HarborCluster" => {
            fields.extend([
                &["trace"] as &[&str],
                &["core", "maxIdleConnections"],
                &["core", "maxOpenConnections"],
                &["core", "cacheLayer"],
                &["expose", "core", "ingress", "ingressClassName"],
                &["expose", "notary", "ingress", "ingressClassName"],
                &["jobservice", "metrics"],
                &["jobservice", "jobLogs"],
                &["jobservice", "storage"],
                &["trivy", "offlineScan"],
                &["trivy", "dbRepository"],
                &["trivy", "javaDBRepository"],
                &["imageChartStorage", "azure"],
                &["imageChartStorage", "gcs"],
                &["imageChartStorage", "oss"],
            ]);
            fields.extend(multipart!("imageChartStorage", "s3"));
        }
        _ => {}
    }
    fields
}

/// Turns the schema of a `v1beta1` spec into that of `v1alpha3`.
pub(super) fn schema(kind: &str, spec: &mut JSONSchemaProps) {
    if kind == "HarborCluster" {
        *spec = cluster();
    }
    for path in lacks(kind) {
        let Some((field, parents)) = path.split_last() else { continue };
        if let Some(parent) = at(spec, parents) {
            parent.properties.iter_mut().for_each(|fields| drop(fields.remove(*field)));
            optional(parent, field);
        }
    }
    if kind == "Harbor" {
        for field in ["database", "redis", "imageChartStorage"] {
            optional(spec, field);
        }
    }
    // These rules refer to removed fields; the webhook checks the same on the converted object.
    for path in [&["imageChartStorage"] as &[&str], &["storage", "driver"]] {
        if let Some(rules) = at(spec, path) {
            rules.x_kubernetes_validations = None;
        }
    }
}

/// Makes a field optional.
fn optional(schema: &mut JSONSchemaProps, field: &str) {
    if let Some(required) = &mut schema.required {
        required.retain(|name| name != field);
        if required.is_empty() {
            schema.required = None;
        }
    }
}

/// Returns the spec schema of HarborCluster in `v1alpha3`, whose database, cache and storage have a different
/// structure.
fn cluster() -> JSONSchemaProps {
    let versions = OldHarborCluster::crd().spec.versions;
    let schema = versions.into_iter().next().and_then(|version| version.schema?.open_api_v3_schema);
    let mut schema = schema.unwrap_or_default();
    tidy(&mut schema);
    at(&mut schema, &["spec"]).map(std::mem::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::definitions;

    #[test]
    fn the_older_version_lacks_only_what_the_newer_one_has() {
        for definition in definitions() {
            let kind = definition.spec.names.kind;
            let mut schemas = definition.spec.versions.into_iter().map(|version| {
                let schema = version.schema.and_then(|schema| schema.open_api_v3_schema).unwrap();
                schema.properties.unwrap().remove("spec").unwrap()
            });
            let mut newer = if kind == "HarborCluster" { cluster() } else { schemas.next().unwrap() };
            let mut older = schemas.next_back().unwrap();
            for path in lacks(&kind) {
                assert!(at(&mut newer, path).is_some(), "{kind}: {path:?} is nowhere");
                assert!(at(&mut older, path).is_none(), "{kind}: {path:?} is still there");
            }
        }
    }
}
