//! `graph`: what would be done for the objects of a manifest, without a cluster.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::Value;
use windlass::NodeError;
use windlass_graph::Report;

use crate::args::{self, GraphFormat};
use crate::failure::Failure;
use crate::operator::Operator;

pub(crate) fn show(operator: &Operator, args: &args::Graph) -> Result<(), Failure> {
    let text = read(&args.manifest)?;
    let shown = plans(operator, &text, args.output).map_err(Failure::Running)?;
    // Somebody who stopped reading has read enough.
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

/// The plans of all objects of a manifest that the operator has blueprints for.
fn plans(operator: &Operator, manifest: &str, format: GraphFormat) -> Result<String, String> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifest)
        .map_err(|error| format!("the manifest cannot be read: {error}"))?;
    let mut shown = String::new();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let drawer =
            operator.drawers.iter().find(|drawer| drawer.api_version == api_version && drawer.kind == kind);
        let Some(drawer) = drawer else { continue };
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
    if shown.is_empty() {
        let known: Vec<String> = operator
            .drawers
            .iter()
            .map(|drawer| format!("{} ({})", drawer.kind, drawer.api_version))
            .collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!(
            "the manifest has no object of a kind that {} has a blueprint for: {known}",
            operator.name
        ));
    }
    Ok(shown)
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
