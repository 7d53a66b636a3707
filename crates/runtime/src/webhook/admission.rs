//! What defaulters and validators are asked, and how they answer.

use std::fmt;

use crate::json::{Unfit, typed};
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::denial::{Cause, Denial};
use super::patch;
use super::review::{Answer, Asked, GroupVersionResource};

/// A question of the API server, with the objects decoded.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// What is about to happen.
    pub operation: Operation<T>,
    /// The object's name; empty where the server will make one up (`generateName`).
    pub name: String,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The resource as it was asked for.
    pub resource: GroupVersionResource,
    /// The subresource (`status`, `scale`); empty for the object itself.
    pub sub_resource: String,
    /// Who asks.
    pub user: UserInfo,
    /// Whether nothing will be stored: side effects must not happen.
    pub dry_run: bool,
}

/// What is about to happen to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<T> {
    /// It will be created.
    Create {
        /// The object to be.
        new: T,
    },
    /// It will be changed.
    Update {
        /// As it is stored.
        old: T,
        /// As it would be.
        new: T,
    },
    /// It will be deleted.
    Delete {
        /// As it is stored.
        old: T,
    },
}

impl<T> Operation<T> {
    /// The object as it would be; `None` for a deletion.
    pub fn wanted(&self) -> Option<&T> {
        match self {
            Self::Create { new } | Self::Update { new, .. } => Some(new),
            Self::Delete { .. } => None,
        }
    }

    /// The object as it is stored; `None` for a creation.
    pub fn stored(&self) -> Option<&T> {
        match self {
            Self::Update { old, .. } | Self::Delete { old } => Some(old),
            Self::Create { .. } => None,
        }
    }
}

/// Fills in what the user left out.
///
/// It is asked about creations and updates (as the webhook's configuration says), never about deletions. What it changes in
/// the object is sent as a patch, and nothing else: fields that `Object` does not know survive.
///
/// The API server may ask twice about one request: a second time must change nothing more.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::webhook::{Defaulter, Denial, Request};
///
/// struct Motto;
///
/// impl Defaulter for Motto {
///     type Object = ConfigMap;
///
///     async fn default(&self, map: &mut ConfigMap, _: &Request<ConfigMap>) -> Result<(), Denial> {
///         map.data.get_or_insert_default().entry("motto".into()).or_insert_with(|| "onwards".into());
///         Ok(())
///     }
/// }
/// ```
pub trait Defaulter: Send + Sync + 'static {
    /// The kind. A struct with the fields of interest will do.
    type Object: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Send + Sync;

    /// Fills in the object; the request has it as it came. An error denies the request.
    ///
    /// Dropped when the API server gives up waiting.
    fn default(
        &self,
        object: &mut Self::Object,
        request: &Request<Self::Object>,
    ) -> impl Future<Output = Result<(), Denial>> + Send;
}

/// Says what is wrong with an object before it is stored.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass_runtime::webhook::{Denial, Findings, Request, Validator};
///
/// struct SmallMaps;
///
/// impl Validator for SmallMaps {
///     type Object = ConfigMap;
///
///     async fn validate(&self, request: &Request<ConfigMap>, found: &mut Findings) -> Result<(), Denial> {
///         let Some(map) = request.operation.wanted() else { return Ok(()) };
///         let count = map.data.as_ref().map_or(0, |data| data.len());
///         if count > 100 {
///             found.invalid("data", count, "must have at most 100 entries; split it");
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Validator: Send + Sync + 'static {
    /// The kind. A struct with the fields of interest will do.
    type Object: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync;

    /// Adds what it finds: all of it, not only the first. The request is denied if anything found is wrong, or with the
    /// error returned; warnings reach the user either way.
    ///
    /// Dropped when the API server gives up waiting.
    fn validate(
        &self,
        request: &Request<Self::Object>,
        found: &mut Findings,
    ) -> impl Future<Output = Result<(), Denial>> + Send;
}

/// What a [`Validator`] found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    wrong: Vec<Cause>,
    warnings: Vec<String>,
}

impl Findings {
    /// A value that cannot be, why, and what can.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Serialize, remedy: impl fmt::Display) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.add("FieldValueInvalid", field, format!("Invalid value: {value}: {remedy}"));
    }

    /// A field that must be given, and how.
    pub fn required(&mut self, field: impl Into<String>, remedy: impl fmt::Display) {
        self.add("FieldValueRequired", field, format!("Required value: {remedy}"));
    }

    /// A field that must not be given or changed, and what to do instead. Its value is not shown: for secrets too.
    pub fn forbidden(&mut self, field: impl Into<String>, remedy: impl fmt::Display) {
        self.add("FieldValueForbidden", field, format!("Forbidden: {remedy}"));
    }

    /// Something that the user should know, and that stops nothing.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Whether nothing is wrong.
    pub fn is_fine(&self) -> bool {
        self.wrong.is_empty()
    }

    fn add(&mut self, reason: &'static str, field: impl Into<String>, message: String) {
        self.wrong.push(Cause { reason, field: field.into(), message });
    }

    fn into_answer<K: Resource<DynamicType = ()>>(self, name: &str, result: Result<(), Denial>) -> Answer {
        let denial = match result {
            Err(denial) => Some(denial),
            Ok(()) if self.wrong.is_empty() => None,
            Ok(()) => Some(Denial::invalid::<K>(name, &self.wrong)),
        };
        Answer { denial, warnings: self.warnings, patch: Vec::new() }
    }
}

/// What the question is about, before anything is decoded.
enum Kind {
    Create,
    Update,
    Delete,
    Connect,
}

fn kind(asked: &Asked) -> Result<Kind, Denial> {
    match &*asked.operation {
        "CREATE" => Ok(Kind::Create),
        "UPDATE" => Ok(Kind::Update),
        "DELETE" => Ok(Kind::Delete),
        "CONNECT" => Ok(Kind::Connect),
        other => Err(Denial::bad_request(format!(
            "operation {other:?} is not known; CREATE, UPDATE, DELETE and CONNECT are"
        ))),
    }
}

fn decode<T: Resource<DynamicType = ()> + DeserializeOwned>(
    which: &str,
    object: &Value,
) -> Result<T, Denial> {
    if object.is_null() {
        return Err(Denial::bad_request(format!("the request has no {which}")));
    }
    // Only the place is told: the value may be a secret.
    typed(object).map_err(|error| {
        Denial::bad_request(format!(
            "the request's {which} cannot be read as a {}: {}",
            T::kind(&()),
            told(&error)
        ))
    })
}

/// serde's message without the value that it quotes.
fn told(error: &Unfit) -> String {
    let text = error.to_string();
    match (text.split_once(": "), text.rsplit_once(", expected ")) {
        (Some((what, _)), Some((_, expected))) => format!("{what}, expected {expected}"),
        _ => text,
    }
}

fn request<T: Resource<DynamicType = ()> + DeserializeOwned>(
    asked: &Asked,
    kind: &Kind,
) -> Result<Option<Request<T>>, Denial> {
    let new = || decode("object", &asked.object);
    let old = || decode("oldObject", &asked.old_object);
    let operation = match kind {
        Kind::Create => Operation::Create { new: new()? },
        Kind::Update => Operation::Update { old: old()?, new: new()? },
        Kind::Delete => Operation::Delete { old: old()? },
        Kind::Connect => return Ok(None),
    };
    Ok(Some(Request {
        operation,
        name: asked.name.clone(),
        namespace: asked.namespace.clone(),
        resource: asked.resource.clone(),
        sub_resource: asked.sub_resource.clone(),
        user: asked.user_info.clone(),
        dry_run: asked.dry_run.unwrap_or_default(),
    }))
}

/// Asks a defaulter.
pub(super) async fn default<D: Defaulter>(defaulter: &D, asked: Asked) -> Result<Answer, Denial> {
    let kind = kind(&asked)?;
    // A deletion has nothing to fill in.
    if matches!(kind, Kind::Delete) {
        return Ok(Answer::default());
    }
    let Some(request) = request::<D::Object>(&asked, &kind)? else { return Ok(Answer::default()) };
    let Some(mut object) = request.operation.wanted().cloned() else { return Ok(Answer::default()) };
    let written = |object: &D::Object| {
        serde_json::to_value(object)
            .map_err(|error| Denial::internal(format!("the object cannot be written: {error}")))
    };
    let before = written(&object)?;
    defaulter.default(&mut object, &request).await?;
    let patch = patch::between(&asked.object, &before, &written(&object)?);
    Ok(Answer { patch, ..Answer::default() })
}

/// Asks a validator.
pub(super) async fn validate<V: Validator>(validator: &V, asked: Asked) -> Result<Answer, Denial> {
    let kind = kind(&asked)?;
    let Some(request) = request::<V::Object>(&asked, &kind)? else { return Ok(Answer::default()) };
    let mut found = Findings::default();
    let result = validator.validate(&request, &mut found).await;
    Ok(found.into_answer::<V::Object>(&request.name, result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::review;
    use futures::FutureExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    struct Rules;

    impl Validator for Rules {
        type Object = ConfigMap;

        async fn validate(&self, request: &Request<ConfigMap>, found: &mut Findings) -> Result<(), Denial> {
            found.warn(format!("asked by {}", request.user.username.as_deref().unwrap_or_default()));
            match &request.operation {
                Operation::Create { new } => {
                    let data = new.data.clone().unwrap_or_default();
                    if let Some(size) = data.get("size").filter(|size| size.parse::<u8>().is_err()) {
                        found.invalid("data.size", size, "must be a number from 0 to 255");
                    }
                    if !data.contains_key("owner") {
                        found.required("data.owner", "say who is to be asked");
                    }
                    Ok(())
                }
                Operation::Update { old, new } if old.data != new.data => {
                    Err(Denial::new("data never changes"))
                }
                Operation::Delete { old } if old.metadata.name.as_deref() == Some("keep") => {
                    Err(Denial::conflict("it is in use; remove its users first"))
                }
                Operation::Update { .. } | Operation::Delete { .. } => Ok(()),
            }
        }
    }

    struct Fill;

    impl Defaulter for Fill {
        type Object = ConfigMap;

        async fn default(&self, map: &mut ConfigMap, _: &Request<ConfigMap>) -> Result<(), Denial> {
            if map.metadata.name.as_deref() == Some("bad") {
                return Err(Denial::new("not this one"));
            }
            map.data.get_or_insert_default().entry("size".into()).or_insert_with(|| "1".into());
            Ok(())
        }
    }

    fn asked(operation: &str, object: &Value, old: &Value) -> Asked {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "name": "m", "operation": operation, "object": object, "oldObject": old,
            "userInfo": {"username": "jane"}}});
        review::read(body.to_string().as_bytes()).unwrap().1
    }

    fn validated(operation: &str, object: &Value, old: &Value) -> Result<Answer, Denial> {
        validate(&Rules, asked(operation, object, old)).now_or_never().unwrap()
    }

    fn defaulted(operation: &str, object: &Value, old: &Value) -> Result<Answer, Denial> {
        default(&Fill, asked(operation, object, old)).now_or_never().unwrap()
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_as_the_api_server_says_it() {
        let answer =
            validated("CREATE", &json!({"metadata": {"name": "m"}, "data": {"size": "big"}}), &Value::Null);
        let answer = answer.unwrap();
        assert_eq!(answer.warnings, ["asked by jane"]);
        let denial = answer.denial.unwrap();
        assert_eq!(denial.code(), 422);
        assert_eq!(
            denial.to_string(),
            "ConfigMap \"m\" is invalid: [data.size: Invalid value: \"big\": must be a number from 0 to 255, \
             data.owner: Required value: say who is to be asked]"
        );
        assert_eq!(denial.status()["details"]["causes"][1]["field"], "data.owner");
    }

    #[test]
    fn an_update_has_old_and_new_and_a_deletion_the_old_object() {
        let object = |value: &str| json!({"metadata": {"name": "keep"}, "data": {"a": value}});
        let denied = |answer: Result<Answer, Denial>| answer.unwrap().denial.map(|denial| denial.code());
        assert_eq!(denied(validated("UPDATE", &object("1"), &object("1"))), None);
        assert_eq!(denied(validated("UPDATE", &object("1"), &object("2"))), Some(403));
        assert_eq!(denied(validated("DELETE", &Value::Null, &object("1"))), Some(409));
        assert_eq!(denied(validated("CONNECT", &json!({"kind": "PodExecOptions"}), &Value::Null)), None);
    }

    #[test]
    fn questions_that_make_no_sense_are_bad_requests() {
        for (operation, object, why) in [
            ("JUMP", json!({}), "operation \"JUMP\" is not known"),
            ("CREATE", Value::Null, "the request has no object"),
            (
                "CREATE",
                json!({"data": {"password": 7}}),
                "the request's object cannot be read as a ConfigMap",
            ),
            ("UPDATE", json!({}), "the request has no oldObject"),
            ("DELETE", Value::Null, "the request has no oldObject"),
        ] {
            let denial = validated(operation, &object, &Value::Null).unwrap_err();
            assert_eq!(denial.code(), 400);
            assert!(denial.to_string().starts_with(why), "{operation}: {denial}");
        }
        assert_eq!(defaulted("JUMP", &json!({}), &Value::Null).unwrap_err().code(), 400);
    }

    #[test]
    fn a_value_that_cannot_be_read_is_not_quoted() {
        let denial = validated("CREATE", &json!({"data": "hunter2"}), &Value::Null).unwrap_err();
        assert!(!denial.to_string().contains("hunter2"), "{denial}");
        assert!(denial.to_string().contains("expected"), "{denial}");
    }

    #[test]
    fn a_defaulter_patches_what_it_changed_and_is_not_asked_about_deletions() {
        let patch = |object: Value| defaulted("CREATE", &object, &Value::Null).map(|answer| answer.patch);
        assert_eq!(
            patch(json!({"metadata": {"name": "m"}, "unknown": 1, "data": {}})).unwrap(),
            [json!({"op": "add", "path": "/data/size", "value": "1"})]
        );
        assert_eq!(
            patch(json!({"metadata": {"name": "m"}, "data": {"size": "2"}})).unwrap(),
            Vec::<Value>::new()
        );
        assert_eq!(patch(json!({"metadata": {"name": "bad"}})).unwrap_err(), Denial::new("not this one"));
        assert_eq!(
            defaulted("DELETE", &Value::Null, &json!({"metadata": {"name": "bad"}})).unwrap(),
            Answer::default()
        );
        assert_eq!(defaulted("CONNECT", &json!({}), &Value::Null).unwrap(), Answer::default());
    }
}
