//! The AdmissionReview on the wire: parsed, and answered in the same version.
//!
//! `v1` and `v1beta1` have the same fields; the answer has the version of the request.

use bytes::Bytes;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::denial::Denial;

/// The supported versions, newest first.
pub(super) const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A review as it is received.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default, borrow)]
    request: Option<RawRequest<'a>>,
}

/// The request of a review. Its objects are only scanned.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRequest<'a> {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource: GroupVersionResource,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(default, borrow)]
    object: Option<&'a RawValue>,
    #[serde(default, borrow)]
    old_object: Option<&'a RawValue>,
    #[serde(default)]
    dry_run: Option<bool>,
}

/// An admission request, with the objects not yet decoded: slices of the body, which is the only copy of
/// them.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) uid: String,
    pub(super) resource: GroupVersionResource,
    pub(super) sub_resource: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) operation: String,
    pub(super) user_info: UserInfo,
    /// Empty if there is none.
    pub(super) object: Bytes,
    /// Empty if there is none.
    pub(super) old_object: Bytes,
    pub(super) dry_run: bool,
}

impl Asked {
    fn new(request: RawRequest<'_>, body: &Bytes) -> Self {
        let slice = |raw: Option<&RawValue>| raw.map(|raw| body.slice_ref(raw.get().as_bytes()));
        Self {
            object: slice(request.object).unwrap_or_default(),
            old_object: slice(request.old_object).unwrap_or_default(),
            uid: request.uid,
            resource: request.resource,
            sub_resource: request.sub_resource,
            name: request.name,
            namespace: request.namespace,
            operation: request.operation,
            user_info: request.user_info,
            dry_run: request.dry_run.unwrap_or_default(),
        }
    }
}

/// The resource of an admission request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionResource {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The API version.
    #[serde(default)]
    pub version: String,
    /// The plural name.
    #[serde(default)]
    pub resource: String,
}

/// The reason why a body is not a review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The uid, if it could be parsed.
    pub(super) uid: String,
    /// The version of the answer.
    pub(super) version: &'static str,
    pub(super) why: String,
}

impl Malformed {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { uid: String::new(), version: VERSIONS[0], why: why.into() }
    }
}

/// Parses a review: the version of the answer, and the request.
pub(super) fn read(body: &Bytes) -> Result<(&'static str, Asked), Malformed> {
    if body.is_empty() {
        return Err(Malformed::new("the request body is empty; an AdmissionReview is expected"));
    }
    // A syntax error of serde_json contains a position, never content.
    let review: Review<'_> = serde_json::from_slice(body)
        .map_err(|error| Malformed::new(format!("the request body is not an AdmissionReview: {error}")))?;
    let uid = review.request.as_ref().map(|request| request.uid.clone()).unwrap_or_default();
    let malformed = |version, why| Malformed { uid: uid.clone(), version, why };
    let Some(version) = VERSIONS.into_iter().find(|version| *version == review.api_version) else {
        let why =
            format!("apiVersion {:?} is not supported; send {}", review.api_version, VERSIONS.join(" or "));
        return Err(malformed(VERSIONS[0], why));
    };
    if review.kind != "AdmissionReview" {
        return Err(malformed(version, format!("kind {:?} is not AdmissionReview", review.kind)));
    }
    match review.request {
        None => Err(malformed(version, "the AdmissionReview has no request".into())),
        Some(request) if request.uid.is_empty() => {
            Err(malformed(version, "the AdmissionReview's request has no uid".into()))
        }
        Some(request) => Ok((version, Asked::new(request, body))),
    }
}

/// The answer to an admission request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    /// A JSON patch; empty if there is none.
    pub(super) patch: Vec<Value>,
}

impl Answer {
    pub(super) fn denied(denial: Denial) -> Self {
        Self { denial: Some(denial), ..Self::default() }
    }

    /// Returns the whole review, with the uid of the request.
    pub(super) fn write(self, version: &str, uid: &str) -> Value {
        let mut response = json!({"uid": uid, "allowed": self.denial.is_none()});
        match self.denial {
            Some(denial) => response["status"] = denial.status(),
            None if !self.patch.is_empty() => {
                response["patch"] = json!(ByteString(Value::from(self.patch).to_string().into_bytes()));
                response["patchType"] = json!("JSONPatch");
            }
            None => {}
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        json!({"apiVersion": version, "kind": "AdmissionReview", "response": response})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_not_a_review_is_refused_with_the_reason_and_the_uid_if_it_has_one() {
        let cases: &[(&str, &str, &str)] = &[
            ("", "", "the request body is empty"),
            ("{", "", "the request body is not an AdmissionReview: EOF"),
            ("7", "", "the request body is not an AdmissionReview: "),
            (r#"{"kind":"AdmissionReview","request":{"uid":"u"}}"#, "u", r#"apiVersion "" is not supported"#),
            (
                r#"{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview","request":{"uid":"u"}}"#,
                "u",
                "v2",
            ),
            (
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{"uid":"u"}}"#,
                "u",
                r#"kind "Pod""#,
            ),
            (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "", "has no request"),
            (
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}"#,
                "",
                "has no uid",
            ),
        ];
        for (body, uid, why) in cases {
            let malformed = read(&Bytes::from(*body)).unwrap_err();
            assert_eq!(&malformed.uid, uid, "{body}");
            assert!(malformed.why.contains(why), "{body}: {}", malformed.why);
        }
    }

    #[test]
    fn both_review_versions_are_answered_in_the_same_version_with_the_uid() {
        for version in VERSIONS {
            let body = json!({"apiVersion": version, "kind": "AdmissionReview", "request": {"uid": "u-1"}});
            let (found, asked) = read(&body.to_string().into()).unwrap();
            let answer = Answer::default().write(found, &asked.uid);
            assert_eq!(
                answer,
                json!({"apiVersion": version, "kind": "AdmissionReview",
                       "response": {"uid": "u-1", "allowed": true}})
            );
        }
    }

    #[test]
    fn seam_m5_the_objects_of_a_review_are_slices_of_its_body() {
        let body = Bytes::from_static(
            br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":
                {"uid":"u","object":{"a": 1},"oldObject":null}}"#,
        );
        let (_, asked) = read(&body).unwrap();
        assert_eq!((&asked.object[..], &asked.old_object[..]), (&br#"{"a": 1}"#[..], &[][..]));
        assert!(body.as_ptr_range().contains(&asked.object.as_ptr()));
    }

    #[test]
    fn a_denial_has_no_patch_and_keeps_its_warnings() {
        let answer = Answer {
            denial: Some(Denial::new("no")),
            warnings: vec!["old field".into()],
            patch: vec![json!({"op": "remove", "path": "/a"})],
        };
        let written = answer.write(VERSIONS[0], "u");
        assert_eq!(written["response"]["allowed"], false);
        assert_eq!(written["response"]["warnings"], json!(["old field"]));
        assert!(written["response"].get("patch").is_none());
    }
}
