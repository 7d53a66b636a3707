//! `graph`: shows the plans of the objects of a manifest, without a cluster.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::Value;
use windlass::NodeError;
use windlass_graph::Report;

use crate::args::{self, GraphFormat};
use crate::failure::Failure;
use crate::operator::{Drawer, Operator};

pub(crate) fn show(operator: &Operator, args: &args::Graph) -> Result<(), Failure> {
    let text = read(&args.manifest)?;
    let shown = plans(operator, &text, args.output)
        .map_err(|error| Failure::Running(format!("{}: {error}", args.manifest.display())))?;
    // A closed standard output is no error: the reader has read enough.
    let _ = std::io::stdout().write_all(shown.as_bytes());
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    let broken =
        |error: std::io::Error| Failure::Environment(format!("{} cannot be read: {error}", path.display()));
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(broken)?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(broken)
}

/// Returns the plans of all objects of a manifest that the operator has blueprints for.
fn plans(operator: &Operator, manifest: &str, format: GraphFormat) -> Result<String, String> {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(manifest).map_err(|error| format!("this is not valid YAML: {error}"))?;
    let mut shown = String::new();
    let mut other_versions = Vec::new();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let drawer =
            operator.drawers.iter().find(|drawer| drawer.api_version == api_version && drawer.kind == kind);
        let Some(drawer) = drawer else {
            let of_kind =
                |drawer: &&Drawer| drawer.kind == kind && group(&drawer.api_version) == group(&api_version);
            other_versions.extend(operator.drawers.iter().find(of_kind).map(|drawer| {
                format!(
                    "{kind} {name} has version {api_version}, but plans are drawn for {} only",
                    drawer.api_version
                )
            }));
            continue;
        };
        let unknown = unknown_fields(operator, &api_version, &kind, &object);
        if !unknown.is_empty() {
            return Err(format!(
                "{kind} {name} has unknown fields, which the API server would drop: {}; `kubectl explain` and the CRD \
                 list those that exist",
                unknown.join(", ")
            ));
        }
        let mut object = object;
        if object.pointer("/metadata/namespace").is_none() {
            object["metadata"]["namespace"] = "default".into();
        }
        let report = (drawer.draw)(object).map_err(|error| format!("{kind} {name} has no plan: {error}"))?;
        if format == GraphFormat::Text {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{kind} {name}: ");
        }
        shown.push_str(&render(&report, format)?);
    }
    if let (true, [first, ..]) = (shown.is_empty(), &other_versions[..]) {
        return Err(format!(
            "{first}: the API server converts it when it is applied; here, write it in that version"
        ));
    }
    if shown.is_empty() {
        let known: Vec<String> = operator
            .drawers
            .iter()
            .map(|drawer| format!("{} ({})", drawer.kind, drawer.api_version))
            .collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!(
            "there is no object of a kind that {} has a blueprint for: {known}",
            operator.name
        ));
    }
    Ok(shown)
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the paths of fields in the spec that the schema of its kind does not have.
fn unknown_fields(operator: &Operator, api_version: &str, kind: &str, object: &Value) -> Vec<String> {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let mut unknown = Vec::new();
    for definition in operator.definitions() {
        if definition.spec.names.kind != kind || definition.spec.group != group(api_version) {
            continue;
        }
        for found in definition.spec.versions.iter().filter(|found| found.name == version) {
            let schema = serde_json::to_value(&found.schema).unwrap_or_default();
            compare(&schema["openAPIV3Schema"]["properties"]["spec"], &object["spec"], "spec", &mut unknown);
        }
    }
    unknown
}

/// Adds the fields of a value that its schema does not have.
fn compare(schema: &Value, value: &Value, path: &str, unknown: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match (&schema["properties"][name.as_str()], &schema["additionalProperties"]) {
                    (Value::Null, Value::Null | Value::Bool(false)) if schema.get("properties").is_some() => {
                        unknown.push(path);
                    }
                    (Value::Null, values) => compare(values, value, &path, unknown),
                    (field, _) => compare(field, value, &path, unknown),
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                compare(&schema["items"], item, &format!("{path}[{at}]"), unknown);
            }
        }
        _ => {}
    }
}

fn render(report: &Report<NodeError>, format: GraphFormat) -> Result<String, String> {
    Ok(match format {
        GraphFormat::Text => report.text().to_string(),
        GraphFormat::Dot => report.dot().to_string(),
        GraphFormat::Mermaid => report.mermaid().to_string(),
        GraphFormat::Json => {
            let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
            format!("{text}\n")
        }
    })
}
