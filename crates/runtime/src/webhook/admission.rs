//! The interface of defaulters and validators.

use std::fmt;

use crate::json::Unfit;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::denial::{Cause, Denial};
use super::patch;
use super::review::{Answer, Asked, GroupVersionResource};

/// An admission request, with the objects decoded.
#[derive(Clone, Debug)]
pub struct Request<T> {
    /// The operation on the object.
    pub operation: Operation<T>,
    /// The object's name; empty if the server will generate one (`generateName`).
    pub name: String,
    /// The object's namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The requested resource.
    pub resource: GroupVersionResource,
    /// The subresource (`status`, `scale`); empty for the object itself.
    pub sub_resource: String,
    /// The user who sent the request.
    pub user: UserInfo,
    /// True for a dry run: side effects must not happen.
    pub dry_run: bool,
}

/// The operation on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<T> {
    /// The object will be created.
    Create {
        /// The new object.
        new: T,
    },
    /// The object will be updated.
    Update {
        /// The object as it is stored.
        old: T,
        /// The new object.
        new: T,
    },
    /// The object will be deleted.
    Delete {
        /// The object as it is stored.
        old: T,
    },
}

impl<T> Operation<T> {
    /// Returns the new object; `None` for a deletion.
    pub fn wanted(&self) -> Option<&T> {
        match self {
            Self::Create { new } | Self::Update { new, .. } => Some(new),
            Self::Delete { .. } => None,
        }
    }

    /// Returns the stored object; `None` for a creation.
    pub fn stored(&self) -> Option<&T> {
        match self {
            Self::Update { old, .. } | Self::Delete { old } => Some(old),
            Self::Create { .. } => None,
        }
    }
}

/// Sets defaults in an object before it is stored.
///
/// It is called for creations and updates (as the webhook's configuration says), never for deletions. Its
/// changes are sent as a patch, and nothing else: fields that `Object` does not know are kept.
///
/// The API server may call it twice for one request: the second call must not change anything more.
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
    /// The kind. A struct with the fields of interest is enough.
    type Object: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Send + Sync;

    /// Sets defaults in the object; the request has it unchanged. An error denies the request.
    ///
    /// The future is dropped when the API server stops waiting.
    fn default(
        &self,
        object: &mut Self::Object,
        request: &Request<Self::Object>,
    ) -> impl Future<Output = Result<(), Denial>> + Send;
}

/// Validates an object before it is stored.
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
    /// The kind. A struct with the fields of interest is enough.
    type Object: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync;

    /// Adds all findings, not only the first. The request is denied if there is an error among them, or with
    /// the returned error; warnings reach the user either way.
    ///
    /// The future is dropped when the API server stops waiting.
    fn validate(
        &self,
        request: &Request<Self::Object>,
        found: &mut Findings,
    ) -> impl Future<Output = Result<(), Denial>> + Send;
}

/// The findings of a [`Validator`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    wrong: Vec<Cause>,
    warnings: Vec<String>,
}

impl Findings {
    /// Adds an invalid value, with the reason and the allowed values.
    pub fn invalid(&mut self, field: impl Into<String>, value: impl Serialize, remedy: impl fmt::Display) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.add("FieldValueInvalid", field, format!("Invalid value: {value}: {remedy}"));
    }

    /// Adds a missing field, and how to set it.
    pub fn required(&mut self, field: impl Into<String>, remedy: impl fmt::Display) {
        self.add("FieldValueRequired", field, format!("Required value: {remedy}"));
    }

    /// Adds a field that must not be set or changed, with a remedy. Its value is not shown, so it can be used
    /// for secrets.
    pub fn forbidden(&mut self, field: impl Into<String>, remedy: impl fmt::Display) {
        self.add("FieldValueForbidden", field, format!("Forbidden: {remedy}"));
    }

    /// Adds a warning for the user, which does not deny the request.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Returns true if there are no errors.
    pub fn is_fine(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Turns the errors that the stored object has too into warnings, so that an update is denied only for
    /// what it changes (validation ratcheting, as the API server does it for schemas). An error counts as the
    /// same if field and message are equal.
    pub fn ratchet(&mut self, stored: &Self) {
        let (old, new): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.wrong).into_iter().partition(|cause| stored.wrong.contains(cause));
        self.wrong = new;
        self.warnings.extend(old.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)));
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

/// The operation, before the objects are decoded.
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
            "operation {other:?} is unknown; expected CREATE, UPDATE, DELETE or CONNECT"
        ))),
    }
}

fn decode<T: Resource<DynamicType = ()> + DeserializeOwned>(which: &str, object: &[u8]) -> Result<T, Denial> {
    if object.is_empty() {
        return Err(Denial::bad_request(format!("the request has no {which}")));
    }
    // Only the path is reported: the value may be a secret.
    serde_json::from_slice(object).map_err(|error| {
        Denial::bad_request(format!(
            "the request's {which} cannot be read as a {}: {}",
            T::kind(&()),
            without_value(&Unfit::from(error))
        ))
    })
}

/// Returns serde's message without the value that it quotes.
fn without_value(error: &Unfit) -> String {
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
        dry_run: asked.dry_run,
    }))
}

/// Runs a defaulter.
pub(super) async fn default<D: Defaulter>(defaulter: &D, asked: Asked) -> Result<Answer, Denial> {
    let kind = kind(&asked)?;
    // A deletion has no object to default.
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
    let after = written(&object)?;
    if before == after {
        return Ok(Answer::default());
    }
    let raw = serde_json::from_slice(&asked.object)
        .map_err(|error| Denial::internal(format!("the object cannot be read: {error}")))?;
    let patch = patch::between(&raw, &before, &after);
    Ok(Answer { patch, ..Answer::default() })
}

/// Runs a validator.
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
    use serde_json::{Value, json};

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
        review::read(&body.to_string().into()).unwrap().1
    }

    fn validated(operation: &str, object: &Value, old: &Value) -> Result<Answer, Denial> {
        validate(&Rules, asked(operation, object, old)).now_or_never().unwrap()
    }

    fn defaulted(operation: &str, object: &Value, old: &Value) -> Result<Answer, Denial> {
        default(&Fill, asked(operation, object, old)).now_or_never().unwrap()
    }

    #[test]
    fn all_invalid_fields_are_reported_at_once_in_the_form_of_the_api_server() {
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
    fn inconsistent_admission_requests_are_bad_requests() {
        for (operation, object, why) in [
            ("JUMP", json!({}), "operation \"JUMP\" is unknown"),
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
    fn errors_that_the_stored_object_has_too_become_warnings() {
        let of = |size: &str, owner: bool| {
            let mut found = Findings::default();
            found.invalid("data.size", size, "must be a number");
            if !owner {
                found.required("data.owner", "say who is to be asked");
            }
            found
        };
        let mut found = of("many", false);
        found.ratchet(&of("many", true));
        assert_eq!(found.wrong.len(), 1, "the owner is missing now: {found:?}");
        assert_eq!(found.warnings, ["data.size: Invalid value: \"many\": must be a number"]);
        let mut found = of("more", true);
        found.ratchet(&of("many", true));
        assert!(!found.is_fine(), "another bad value is an error");
    }

    #[test]
    fn a_value_that_cannot_be_decoded_is_not_quoted() {
        let denial = validated("CREATE", &json!({"data": "hunter2"}), &Value::Null).unwrap_err();
        assert!(!denial.to_string().contains("hunter2"), "{denial}");
        assert!(denial.to_string().contains("expected"), "{denial}");
    }

    #[test]
    fn a_defaulter_patches_its_changes_and_is_not_called_for_deletions() {
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
