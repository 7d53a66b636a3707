//! Conversion of stored objects between the versions of a kind.
//!
//! One version is the **hub**; every other one, a **spoke**, converts to and from it. Spokes are converted to
//! each other by way of the hub. Conversions are pure functions: the API server calls them for every read of
//! an object stored in another version.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::json::typed;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::panics::panic_message;

const VERSIONS: [&str; 2] = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"];

/// The reason why an object cannot be converted, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConversionError(String);

impl ConversionError {
    /// Creates an error with a message for the user who reads or writes the object.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The versions of a kind do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConverterError {
    /// The kind of a spoke differs from the hub's.
    #[error("{spoke} cannot be converted to and from {hub}: they are not versions of one kind")]
    OtherKind {
        /// The spoke, as `kind.group`.
        spoke: String,
        /// The hub, as `kind.group`.
        hub: String,
    },
    /// There are two conversions for one version.
    #[error("there are two conversions for {0}")]
    Twice(String),
}

type Convert<A, B> = Arc<dyn Fn(A) -> Result<B, ConversionError> + Send + Sync>;
type Boxed = Box<dyn Any + Send>;

/// One version: conversion from JSON to the hub and back.
struct Version {
    to_hub: Convert<Value, Boxed>,
    from_hub: Convert<Boxed, Value>,
}

/// Converts the versions of one kind.
///
/// ```
/// # use kube::CustomResource; use schemars::JsonSchema; use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
/// # #[kube(group = "example.com", version = "v1", kind = "Game", namespaced)]
/// # pub struct GameSpec { replicas: i32 }
/// # mod old { use kube::CustomResource; use schemars::JsonSchema; use serde::{Deserialize, Serialize};
/// # #[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
/// # #[kube(group = "example.com", version = "v1alpha1", kind = "Game", namespaced)]
/// # pub struct GameSpec { pub size: i32 } }
/// use windlass_runtime::webhook::Converter;
///
/// let games = Converter::<Game>::hub()
///     .spoke(
///         |old: old::Game| Ok(Game { metadata: old.metadata, spec: GameSpec { replicas: old.spec.size } }),
///         |hub: Game| Ok(old::Game { metadata: hub.metadata, spec: old::GameSpec { size: hub.spec.replicas } }),
///     )?;
/// # Ok::<(), windlass_runtime::webhook::ConverterError>(())
/// ```
#[must_use = "pass it to the webhooks"]
pub struct Converter<H> {
    kind: ConverterOf,
    hub: std::marker::PhantomData<fn() -> H>,
}

/// A converter without its type.
pub(super) struct ConverterOf {
    group: String,
    kind: String,
    versions: BTreeMap<String, Version>,
}

impl<H> fmt::Debug for Converter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Converter")
            .field("kind", &self.kind.name())
            .field("versions", &self.kind.versions.keys())
            .finish()
    }
}

fn read<T: DeserializeOwned>(object: Value) -> Result<T, ConversionError> {
    let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    typed(&object)
        .map_err(|error| ConversionError(format!("the object cannot be read as {version}: {error}")))
}

fn write<T: Resource<DynamicType = ()> + Serialize>(object: &T) -> Result<Value, ConversionError> {
    let mut written = serde_json::to_value(object)
        .map_err(|error| ConversionError(format!("the object cannot be written: {error}")))?;
    written["apiVersion"] = json!(T::api_version(&()));
    written["kind"] = json!(T::kind(&()));
    Ok(written)
}

impl<H> Converter<H>
where
    H: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + 'static,
{
    /// Creates a converter with only the hub.
    pub fn hub() -> Self {
        let hub = Version {
            to_hub: Arc::new(|object| Ok(Box::new(read::<H>(object)?))),
            from_hub: Arc::new(|hub| write(&*unboxed::<H>(hub)?)),
        };
        let kind = ConverterOf {
            group: H::group(&()).into_owned(),
            kind: H::kind(&()).into_owned(),
            versions: [(H::api_version(&()).into_owned(), hub)].into(),
        };
        Self { kind, hub: std::marker::PhantomData }
    }

    /// Adds a version. Both directions must keep `metadata`: the API server rejects a changed name, namespace
    /// or uid.
    pub fn spoke<S>(
        mut self,
        to_hub: impl Fn(S) -> Result<H, ConversionError> + Send + Sync + 'static,
        from_hub: impl Fn(H) -> Result<S, ConversionError> + Send + Sync + 'static,
    ) -> Result<Self, ConverterError>
    where
        S: Resource<DynamicType = ()> + DeserializeOwned + Serialize + 'static,
    {
        let spoke = name(&S::kind(&()), &S::group(&()));
        if spoke != self.kind.name() {
            return Err(ConverterError::OtherKind { spoke, hub: self.kind.name() });
        }
        let version = Version {
            to_hub: Arc::new(move |object| Ok(Box::new(to_hub(read(object)?)?))),
            from_hub: Arc::new(move |hub| write(&from_hub(*unboxed(hub)?)?)),
        };
        let api_version = S::api_version(&()).into_owned();
        match self.kind.versions.insert(api_version.clone(), version) {
            None => Ok(self),
            Some(_) => Err(ConverterError::Twice(api_version)),
        }
    }

    pub(super) fn of(self) -> ConverterOf {
        self.kind
    }
}

fn unboxed<H: 'static>(hub: Boxed) -> Result<Box<H>, ConversionError> {
    // Cannot happen: the versions of one converter share its hub.
    hub.downcast().map_err(|_| ConversionError::new("internal error: another hub"))
}

fn name(kind: &str, group: &str) -> String {
    format!("{kind}.{group}")
}

impl ConverterOf {
    /// Returns the name `kind.group`.
    pub(super) fn name(&self) -> String {
        name(&self.kind, &self.group)
    }

    fn convert(&self, from: &str, to: &str, object: Value) -> Result<Value, ConversionError> {
        let version = |wanted: &str| {
            self.versions.get(wanted).ok_or_else(|| {
                let known: Vec<_> = self.versions.keys().map(String::as_str).collect();
                ConversionError(format!(
                    "{} has no version {wanted}; its versions are {}",
                    self.kind,
                    known.join(", ")
                ))
            })
        };
        let (source, target) = (version(from)?, version(to)?);
        if from == to {
            return Err(ConversionError(format!("the object is already in version {to}")));
        }
        (target.from_hub)((source.to_hub)(object)?)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    request: Option<Asked>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(default)]
    uid: String,
    #[serde(rename = "desiredAPIVersion", default)]
    desired: String,
    #[serde(default)]
    objects: Vec<Value>,
}

/// The result of a review.
pub(super) struct Converted {
    /// 200 for every review, whatever its result; 400 for a malformed body.
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) panicked: bool,
}

/// Answers a ConversionReview. All objects are converted or none; the first failure is the answer.
pub(super) fn answer(converters: &BTreeMap<String, ConverterOf>, body: &[u8]) -> Converted {
    let failed = |version: &str, uid: &str, code, why: String| Converted {
        code,
        body: review(version, &json!({"uid": uid, "result": {"status": "Failure", "message": why}})),
        panicked: false,
    };
    if body.is_empty() {
        return failed(
            VERSIONS[0],
            "",
            400,
            "the request body is empty; a ConversionReview is expected".into(),
        );
    }
    let asked: Review = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => {
            return failed(
                VERSIONS[0],
                "",
                400,
                format!("the request body is not a ConversionReview: {error}"),
            );
        }
    };
    let uid = asked.request.as_ref().map(|request| request.uid.clone()).unwrap_or_default();
    let Some(version) = VERSIONS.into_iter().find(|version| *version == asked.api_version) else {
        let why =
            format!("apiVersion {:?} is not supported; send {}", asked.api_version, VERSIONS.join(" or "));
        return failed(VERSIONS[0], &uid, 400, why);
    };
    let request = match asked.request {
        Some(request) if asked.kind == "ConversionReview" && !request.uid.is_empty() => request,
        _ => {
            return failed(
                version,
                &uid,
                400,
                "the review is not a ConversionReview with a request and a uid".into(),
            );
        }
    };
    // Objects that a panicking conversion left unfinished are dropped.
    let result = catch_unwind(AssertUnwindSafe(|| all(converters, request)));
    match result {
        Ok(Ok(objects)) => {
            let response = json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}});
            Converted { code: 200, body: review(version, &response), panicked: false }
        }
        Ok(Err(error)) => failed(version, &uid, 200, error.0),
        Err(panic) => {
            tracing::error!(panic = panic_message(&*panic), "a conversion panicked");
            let why = "internal error occurred during conversion".into();
            Converted { panicked: true, ..failed(version, &uid, 200, why) }
        }
    }
}

/// Returns the answer to a malformed body.
pub(super) fn refused(why: &str) -> Value {
    review(VERSIONS[0], &json!({"uid": "", "result": {"status": "Failure", "message": why}}))
}

fn review(version: &str, response: &Value) -> Value {
    json!({"apiVersion": version, "kind": "ConversionReview", "response": response})
}

fn all(converters: &BTreeMap<String, ConverterOf>, asked: Asked) -> Result<Vec<Value>, ConversionError> {
    let Asked { desired, objects, .. } = asked;
    let convert = |(index, object): (usize, Value)| {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (from, kind) = (text("apiVersion"), text("kind"));
        let object_name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let group = from.split_once('/').map_or("", |(group, _)| group);
        let converter = converters.get(&name(&kind, group)).ok_or_else(|| {
            ConversionError(format!("object {index} is a {kind} ({from}), for which there is no conversion"))
        })?;
        converter.convert(&from, &desired, object).map_err(|error| {
            ConversionError(format!("{kind} {object_name:?} cannot be converted to {desired}: {error}"))
        })
    };
    objects.into_iter().enumerate().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::CustomResource;
    use schemars::JsonSchema;

    macro_rules! version {
        ($module:ident, $version:literal, $field:ident) => {
            mod $module {
                use super::*;
                #[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
                #[kube(group = "example.com", version = $version, kind = "Game", namespaced)]
                pub(super) struct GameSpec {
                    pub(super) $field: i32,
                }
            }
        };
    }
    version!(v1, "v1", replicas);
    version!(v1beta1, "v1beta1", count);
    version!(v1alpha1, "v1alpha1", size);

    fn games() -> Converter<v1::Game> {
        Converter::hub()
            .spoke(
                |old: v1beta1::Game| {
                    assert_ne!(old.spec.count, 13, "unlucky");
                    let spec = v1::GameSpec { replicas: old.spec.count };
                    Ok(v1::Game { metadata: old.metadata, spec })
                },
                |hub: v1::Game| {
                    let spec = v1beta1::GameSpec { count: hub.spec.replicas };
                    Ok(v1beta1::Game { metadata: hub.metadata, spec })
                },
            )
            .unwrap()
            .spoke(
                |old: v1alpha1::Game| {
                    if old.spec.size < 0 {
                        return Err(ConversionError::new("spec.size is below 0; set it to 0"));
                    }
                    let spec = v1::GameSpec { replicas: old.spec.size };
                    Ok(v1::Game { metadata: old.metadata, spec })
                },
                |hub: v1::Game| {
                    let spec = v1alpha1::GameSpec { size: hub.spec.replicas };
                    Ok(v1alpha1::Game { metadata: hub.metadata, spec })
                },
            )
            .unwrap()
    }

    fn converters() -> BTreeMap<String, ConverterOf> {
        let games = games().of();
        [(games.name(), games)].into()
    }

    fn game(version: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Game", "metadata": {"name": "g"}, "spec": spec})
    }

    fn asked(to: &str, objects: &[Value]) -> Value {
        let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": format!("example.com/{to}"), "objects": objects}});
        let converted = answer(&converters(), body.to_string().as_bytes());
        assert_eq!(converted.code, 200);
        assert_eq!(converted.body["response"]["uid"], "u");
        converted.body["response"].clone()
    }

    #[test]
    fn objects_of_mixed_versions_are_converted_also_from_spoke_to_spoke() {
        let objects = [game("v1", &json!({"replicas": 1})), game("v1alpha1", &json!({"size": 2}))];
        let response = asked("v1beta1", &objects);
        assert_eq!(response["result"]["status"], "Success");
        assert_eq!(
            response["convertedObjects"],
            json!([game("v1beta1", &json!({"count": 1})), game("v1beta1", &json!({"count": 2}))])
        );
        assert_eq!(asked("v1", &[])["convertedObjects"], json!([]));
    }

    #[test]
    fn the_first_failed_conversion_fails_all_and_names_the_object_and_a_remedy() {
        let objects = [game("v1beta1", &json!({"count": 1})), game("v1alpha1", &json!({"size": -1}))];
        let response = asked("v1", &objects);
        assert_eq!(response["result"]["status"], "Failure");
        assert_eq!(
            response["result"]["message"],
            "Game \"g\" cannot be converted to example.com/v1: spec.size is below 0; set it to 0"
        );
        assert!(response.get("convertedObjects").is_none());
    }

    #[test]
    fn an_object_of_an_unknown_version_fails_the_conversion() {
        for (to, object, why) in [
            ("v1", game("v1", &json!({"replicas": 1})), "already in version example.com/v1"),
            (
                "v9",
                game("v1", &json!({"replicas": 1})),
                "Game has no version example.com/v9; its versions are",
            ),
            ("v1", game("v9", &json!({})), "Game has no version example.com/v9"),
            ("v1", json!({"apiVersion": "v1", "kind": "Pod"}), "there is no conversion"),
            (
                "v1",
                game("v1beta1", &json!({})),
                "cannot be read as example.com/v1beta1: missing field `count`",
            ),
            ("v1", json!(7), "there is no conversion"),
        ] {
            let response = asked(to, &[object]);
            assert_eq!(response["result"]["status"], "Failure");
            let message = response["result"]["message"].as_str().unwrap();
            assert!(message.contains(why), "{message}");
        }
    }

    #[test]
    fn a_panicking_conversion_fails_without_revealing_its_message() {
        let body = json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": "example.com/v1", "objects": [game("v1beta1", &json!({"count": 13}))]}});
        let converted = answer(&converters(), body.to_string().as_bytes());
        assert!(converted.panicked);
        assert_eq!(
            converted.body,
            json!({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview", "response": {
                "uid": "u",
                "result": {"status": "Failure", "message": "internal error occurred during conversion"}}})
        );
    }

    #[test]
    fn a_body_that_is_not_a_conversion_review_is_a_bad_request() {
        for body in ["", "{", "{}", r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#] {
            let converted = answer(&converters(), body.as_bytes());
            assert_eq!((converted.code, converted.panicked), (400, false), "{body}");
            assert_eq!(converted.body["response"]["result"]["status"], "Failure");
        }
    }

    #[test]
    fn versions_of_different_kinds_are_refused() {
        #[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
        #[kube(group = "example.com", version = "v1", kind = "Toy", namespaced)]
        struct ToySpec {}
        let error = games()
            .spoke(|_: Toy| Err(ConversionError::new("")), |_| Err(ConversionError::new("")))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Toy.example.com cannot be converted to and from Game.example.com: they are not versions of one kind"
        );
        let error = games().spoke(Ok::<v1::Game, _>, Ok).unwrap_err();
        assert_eq!(error, ConverterError::Twice("example.com/v1".into()));
    }
}
