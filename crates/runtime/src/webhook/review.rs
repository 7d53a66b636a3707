//! The AdmissionReview on the wire: read, and answered in the version asked.
//!
//! `v1` and `v1beta1` have the same fields; the answer carries the version of the question.

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::{Value, json};

use super::denial::Denial;

/// The versions that are understood, newest first.
pub(super) const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A review as it arrives.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    request: Option<Asked>,
}

/// What is asked, with the objects not yet decoded.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) resource: GroupVersionResource,
    #[serde(default)]
    pub(super) sub_resource: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) operation: String,
    #[serde(default)]
    pub(super) user_info: UserInfo,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    pub(super) old_object: Value,
    #[serde(default)]
    pub(super) dry_run: Option<bool>,
}

/// Which resource is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionResource {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The plural name.
    #[serde(default)]
    pub resource: String,
}

/// Why a body is no review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The uid, where one could be read.
    pub(super) uid: String,
    /// The version to answer in.
    pub(super) version: &'static str,
    pub(super) why: String,
}

impl Malformed {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { uid: String::new(), version: VERSIONS[0], why: why.into() }
    }
}

/// Reads a review: the version to answer in, and what is asked.
pub(super) fn read(body: &[u8]) -> Result<(&'static str, Asked), Malformed> {
    if body.is_empty() {
        return Err(Malformed::new("the request body is empty; an AdmissionReview is expected"));
    }
    // A parse error of serde_json tells a position, never content.
    let review: Review = serde_json::from_slice(body)
        .map_err(|error| Malformed::new(format!("the request body is no AdmissionReview: {error}")))?;
    let uid = review.request.as_ref().map(|request| request.uid.clone()).unwrap_or_default();
    let malformed = |version, why| Malformed { uid: uid.clone(), version, why };
    let Some(version) = VERSIONS.into_iter().find(|version| *version == review.api_version) else {
        let why =
            format!("apiVersion {:?} is not understood; send {}", review.api_version, VERSIONS.join(" or "));
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
        Some(request) => Ok((version, request)),
    }
}

/// What is answered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) denial: Option<Denial>,
    pub(super) warnings: Vec<String>,
    /// A JSON patch; empty for none.
    pub(super) patch: Vec<Value>,
}

impl Answer {
    pub(super) fn denied(denial: Denial) -> Self {
        Self { denial: Some(denial), ..Self::default() }
    }

    /// The whole review, with the uid of the question.
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
    fn what_is_no_review_is_refused_with_the_reason_and_the_uid_where_there_is_one() {
        let cases: &[(&str, &str, &str)] = &[
            ("", "", "the request body is empty"),
            ("{", "", "the request body is no AdmissionReview: EOF"),
            ("7", "", "the request body is no AdmissionReview: "),
            (
                r#"{"kind":"AdmissionReview","request":{"uid":"u"}}"#,
                "u",
                r#"apiVersion "" is not understood"#,
            ),
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
            let malformed = read(body.as_bytes()).unwrap_err();
            assert_eq!(&malformed.uid, uid, "{body}");
            assert!(malformed.why.contains(why), "{body}: {}", malformed.why);
        }
    }

    #[test]
    fn both_versions_are_answered_in_kind_with_the_uid() {
        for version in VERSIONS {
            let body = json!({"apiVersion": version, "kind": "AdmissionReview", "request": {"uid": "u-1"}});
            let (found, asked) = read(body.to_string().as_bytes()).unwrap();
            let answer = Answer::default().write(found, &asked.uid);
            assert_eq!(
                answer,
                json!({"apiVersion": version, "kind": "AdmissionReview",
                       "response": {"uid": "u-1", "allowed": true}})
            );
        }
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
