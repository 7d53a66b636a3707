//! Conversion between `v1alpha3` and `v1beta1`.
//!
//! Conversion is lossless in both directions: fields that a version lacks are stored in an annotation of the
//! object in that version, and edits of the user take precedence over it. Every object can be converted: the
//! code works on JSON, so that an unexpected value in a stored object never makes it unreadable.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_operator::{BoxError, Setup};
use windlass_runtime::webhook::{Converter, ConverterError};

use super::residue::Residue;
use super::{
    ChartMuseum, Core, Exporter, Harbor, HarborCluster, JobService, NotaryServer, NotarySigner, OLD_VERSION,
    Portal, Registry, RegistryController, Trivy, VERSION, alpha, conversion_cluster,
};

/// Prefix of the annotation that stores the fields of the other version; the suffix is that version.
pub(crate) const KEPT: &str = "conversion.windlass.dev/";

/// Registers the converters of all kinds.
pub fn converters(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    setup.converter(converter::<ChartMuseum>()?)?;
    setup.converter(converter::<Core>()?)?;
    setup.converter(converter::<Exporter>()?)?;
    setup.converter(converter::<Harbor>()?)?;
    setup.converter(converter::<HarborCluster>()?)?;
    setup.converter(converter::<JobService>()?)?;
    setup.converter(converter::<NotaryServer>()?)?;
    setup.converter(converter::<NotarySigner>()?)?;
    setup.converter(converter::<Portal>()?)?;
    setup.converter(converter::<Registry>()?)?;
    setup.converter(converter::<RegistryController>()?)?;
    setup.converter(converter::<Trivy>()?)?;
    Ok(())
}

/// Returns the converter of one kind.
pub(crate) fn converter<K>() -> Result<Converter<Untyped<K, Stored>>, ConverterError>
where
    K: Resource<DynamicType = ()> + 'static,
{
    Converter::hub().spoke(|old: Untyped<K, Old>| Ok(newer(old)), |new: Untyped<K, Stored>| Ok(older(new)))
}

/// Converts an object from `v1alpha3` to `v1beta1`.
pub fn newer<K: Resource<DynamicType = ()>>(old: Untyped<K, Old>) -> Untyped<K, Stored> {
    let kind = K::kind(&());
    convert(old, |old| to_new(&kind, old), |new| to_old(&kind, new))
}

/// Converts an object from `v1beta1` to `v1alpha3`.
pub fn older<K: Resource<DynamicType = ()>>(new: Untyped<K, Stored>) -> Untyped<K, Old> {
    let kind = K::kind(&());
    convert(new, |new| to_old(&kind, new), |old| to_new(&kind, old))
}

fn convert<K, From: Version, To: Version>(
    object: Untyped<K, From>,
    there: impl Fn(&Value) -> Value,
    back: impl Fn(&Value) -> Value,
) -> Untyped<K, To> {
    let Untyped { mut metadata, mut content, .. } = object;
    if let Some(spec) = content.get_mut("spec") {
        let annotations = metadata.annotations.get_or_insert_default();
        let mut converted = there(spec);
        if let Some(kept) = annotations.remove(&format!("{KEPT}{}", To::NAME)) {
            Residue::read(&kept).apply(&mut converted);
        }
        let lost = Residue::between(&back(&converted), spec);
        let name = format!("{KEPT}{}", From::NAME);
        match lost.write() {
            Some(lost) => drop(annotations.insert(name, lost)),
            // No one else writes this annotation.
            None => drop(annotations.remove(&name)),
        }
        *spec = converted;
        metadata.annotations = metadata.annotations.filter(|annotations| !annotations.is_empty());
    }
    Untyped { metadata, content, kind: PhantomData }
}

fn to_new(kind: &str, old: &Value) -> Value {
    if kind == "HarborCluster" { conversion_cluster::to_new(old) } else { old.clone() }
}

fn to_old(kind: &str, new: &Value) -> Value {
    let mut old = if kind == "HarborCluster" { conversion_cluster::to_old(new) } else { new.clone() };
    for path in alpha::lacks(kind) {
        let Some((field, parents)) = path.split_last() else { continue };
        let parent = parents.iter().try_fold(&mut old, |value, field| value.get_mut(*field));
        if let Some(Value::Object(fields)) = parent {
            fields.remove(*field);
        }
    }
    old
}

/// API version of the kinds.
pub(crate) trait Version: 'static {
    /// Name of the version.
    const NAME: &'static str;
}

/// The stored version, `v1beta1`.
#[derive(Clone, Copy, Debug)]
pub enum Stored {}

/// The deprecated version, `v1alpha3`.
#[derive(Clone, Copy, Debug)]
pub enum Old {}

impl Version for Stored {
    const NAME: &'static str = VERSION;
}

impl Version for Old {
    const NAME: &'static str = OLD_VERSION;
}

/// Object of kind `K` in version `V`, as JSON.
#[derive(Deserialize, Serialize)]
#[serde(bound = "")]
pub struct Untyped<K, V> {
    /// Metadata of the object.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// All other fields of the object.
    #[serde(flatten)]
    pub content: Map<String, Value>,
    #[serde(skip)]
    kind: PhantomData<fn() -> (K, V)>,
}

impl<K, V> fmt::Debug for Untyped<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Untyped").field("metadata", &self.metadata).field("content", &self.content).finish()
    }
}

impl<K: Resource<DynamicType = ()>, V: Version> Resource for Untyped<K, V> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        V::NAME.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    fn object<K, V>(spec: Value) -> Untyped<K, V> {
        let content = json!({"spec": spec, "status": {"conditions": []}});
        let Value::Object(content) = content else { unreachable!() };
        Untyped { metadata: ObjectMeta::default(), content, kind: PhantomData }
    }

    fn spec<K, V>(object: &Untyped<K, V>) -> &Value {
        &object.content["spec"]
    }

    #[test]
    fn fields_unknown_to_the_older_version_are_kept() {
        let new = json!({"version": "2.6.2", "trace": {"provider": "otel"}, "core": {"maxIdleConnections": 5, "replicas": 2}});
        let old = older::<Harbor>(object(new.clone()));
        assert_eq!(spec(&old), &json!({"version": "2.6.2", "core": {"replicas": 2}}));
        let kept = &old.metadata.annotations.as_ref().unwrap()["conversion.windlass.dev/v1beta1"];
        assert!(kept.contains("otel"), "{kept}");
        let back = newer::<Harbor>(old);
        assert_eq!(spec(&back), &new);
        assert_eq!(back.metadata.annotations, None);
    }

    #[test]
    fn an_edit_in_the_older_version_keeps_what_it_does_not_touch() {
        let new =
            json!({"network": {"ipFamilies": ["IPv4"]}, "core": {"maxIdleConnections": 5}, "portal": {}});
        let mut old = older::<Harbor>(object(new));
        old.content["spec"] = json!({"core": {"replicas": 3}});
        let back = newer::<Harbor>(old);
        let expected =
            json!({"network": {"ipFamilies": ["IPv4"]}, "core": {"replicas": 3, "maxIdleConnections": 5}});
        assert_eq!(spec(&back), &expected);
    }

    #[test]
    fn a_component_that_is_removed_in_the_older_version_does_not_come_back() {
        let mut old = older::<Harbor>(object(json!({"jobservice": {"metrics": {"enabled": true}}})));
        old.content["spec"] = json!({});
        assert_eq!(spec(&newer::<Harbor>(old)), &json!({}));
    }

    /// Generates JSON that sometimes looks like the kinds of this operator.
    fn json() -> impl Strategy<Value = Value> {
        let words = [
            "network",
            "trace",
            "core",
            "maxIdleConnections",
            "jobservice",
            "metrics",
            "storage",
            "imageChartStorage",
            "cache",
            "database",
            "kind",
            "spec",
            "redis",
            "redisFailover",
            "operatorVersion",
            "server",
            "serviceAccountName",
            "postgresql",
            "zlandoPostgreSql",
            "minIO",
            "s3",
            "swift",
            "filesystem",
            "fileSystem",
            "azure",
            "redirect",
            "enable",
            "disable",
            "expose",
            "inClusterCache",
            "redisSpec",
            "inClusterDatabase",
            "postgresSqlSpec",
            "inClusterStorage",
            "minIOSpec",
            "driver",
            "multipartcopychunksize",
            "",
        ];
        let kinds = [
            "Redis",
            "RedisFailover",
            "PostgreSQL",
            "Zlando/PostgreSQL",
            "PostgresSQL",
            "MinIO",
            "S3",
            "Swift",
            "FileSystem",
            "Azure",
            "BuiltIn",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(kinds.to_vec()).prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                1 => vec(inner.clone(), 0..3).prop_map(Value::from),
                6 => btree_map(prop::sample::select(words.to_vec()).prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn converting_from_the_newer_version_and_back_loses_nothing(new in json()) {
            let back = newer::<HarborCluster>(older(object(new.clone())));
            prop_assert_eq!(spec(&back), &new);
            let back = newer::<Harbor>(older(object(new.clone())));
            prop_assert_eq!(spec(&back), &new);
            let back = newer::<Registry>(older(object(new.clone())));
            prop_assert_eq!(spec(&back), &new);
        }

        #[test]
        fn converting_from_the_older_version_and_back_loses_nothing(old in json()) {
            let twice = older::<HarborCluster>(newer(object(old.clone())));
            prop_assert_eq!(spec(&twice), &old);
            // A second round trip does not change the object.
            let thrice = older::<HarborCluster>(newer(twice));
            prop_assert_eq!(spec(&thrice), &old);
        }

        #[test]
        fn conversion_survives_any_content_of_annotations(new in json(), text in "\\PC*") {
            let mut object: Untyped<HarborCluster, Stored> = object(new);
            let annotations = [(format!("{KEPT}{OLD_VERSION}"), text.clone()), (format!("{KEPT}{VERSION}"), text)];
            object.metadata.annotations = Some(annotations.into());
            let _ = newer(older(object));
        }
    }
}
