//! Changes to schemas that were made from Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// Brings a schema to what these kinds have always accepted.
pub(super) fn tidy(schema: &mut JSONSchemaProps) {
    visit(schema, &mut |schema| {
        if schema.nullable.take().is_some() {
            schema.enum_.iter_mut().for_each(|values| values.retain(|value| !value.0.is_null()));
        }
        if let Some(JSON(value)) = &mut schema.default {
            drop_nulls(value);
            if is_empty(value) {
                schema.default = None;
            }
        }
        if matches!(schema.format.as_deref(), Some("uint" | "int" | "uint32")) {
            schema.format = None;
        }
    });
    // The one field that has always taken null.
    for loggers in ["jobLoggers", "loggers"] {
        if let Some(files) = at(schema, &["spec", loggers, "files"]) {
            files.nullable = Some(true);
        }
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The schema of a field.
pub(super) fn at<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    path.iter().try_fold(schema, |schema, field| schema.properties.as_mut()?.get_mut(*field))
}

/// Does something to a schema and to everything in it.
pub(super) fn visit(schema: &mut JSONSchemaProps, change: &mut impl FnMut(&mut JSONSchemaProps)) {
    change(schema);
    for field in schema.properties.iter_mut().flat_map(|fields| fields.values_mut()) {
        visit(field, change);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => visit(item, change),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(|item| visit(item, change)),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        visit(value, change);
    }
}
