//! The meaning of a write response for the object: its present form, or that it is gone.

use serde::Deserialize;

use crate::meta::Uid;

/// The state of the object after a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The object is as the response shows it.
    Stands,
    /// The object with this uid is deleted.
    Gone(Uid),
    /// The response does not say.
    Unknown,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    metadata: ProbeMeta,
    #[serde(default)]
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ProbeMeta {
    uid: Option<Uid>,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<serde::de::IgnoredAny>>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    uid: Option<Uid>,
}

/// Interprets a response. `deleting`: it answers a delete.
///
/// If nothing delays a deletion, some kinds answer with a status that names the uid, others with the last
/// form of the object; if something does (a finalizer, a grace period), the response is the present object.
/// An update that removes the last finalizer of an object marked for deletion deletes it, and is answered
/// with its last form too.
pub(crate) fn fate(body: &[u8], deleting: bool) -> Fate {
    let Ok(probe) = serde_json::from_slice::<Probe>(body) else {
        return Fate::Unknown;
    };
    if probe.kind.as_deref() == Some("Status") && probe.api_version.as_deref() == Some("v1") {
        return match probe.details.and_then(|details| details.uid) {
            Some(uid) if deleting && !uid.is_unknown() => Fate::Gone(uid),
            _ => Fate::Unknown,
        };
    }
    let meta = probe.metadata;
    let Some(uid) = meta.uid.filter(|uid| !uid.is_unknown()) else {
        return Fate::Unknown;
    };
    let held = meta.finalizers.is_some_and(|finalizers| !finalizers.is_empty())
        || meta.deletion_grace_period_seconds != Some(0);
    match (meta.deletion_timestamp.is_some(), deleting) {
        (true, _) if !held => Fate::Gone(uid),
        (false, true) => Fate::Gone(uid),
        _ => Fate::Stands,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";

    fn object(meta: &str) -> String {
        format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"uid":"{UID}"{meta}}}}}"#)
    }

    #[test]
    fn each_write_response_is_interpreted() {
        let gone = Fate::Gone(UID.parse().unwrap());
        let marked = r#","deletionTimestamp":"2026-01-01T00:00:00Z""#;
        let status = format!(
            r#"{{"kind":"Status","apiVersion":"v1","status":"Success","details":{{"name":"x","uid":"{UID}"}}}}"#
        );
        for (what, body, deleting, fate_expected) in [
            ("an update", object(""), false, Fate::Stands),
            ("a delete answered with a status", status.clone(), true, gone),
            ("a status that answers something else", status, false, Fate::Unknown),
            ("a delete answered with the last form", object(""), true, gone),
            (
                "a pod with time to stop",
                object(&format!(r#"{marked},"deletionGracePeriodSeconds":30"#)),
                true,
                Fate::Stands,
            ),
            (
                "a pod killed at once",
                object(&format!(r#"{marked},"deletionGracePeriodSeconds":0"#)),
                true,
                gone,
            ),
            (
                "an object with a finalizer",
                object(&format!(r#"{marked},"deletionGracePeriodSeconds":0,"finalizers":["a/b"]"#)),
                true,
                Fate::Stands,
            ),
            ("a namespace, which ends by its own rules", object(marked), true, Fate::Stands),
            (
                "an update that took the last finalizer",
                object(&format!(r#"{marked},"deletionGracePeriodSeconds":0,"finalizers":[]"#)),
                false,
                gone,
            ),
            ("nonsense", "<html>".to_owned(), true, Fate::Unknown),
            (
                "a status without uid",
                r#"{"kind":"Status","apiVersion":"v1"}"#.to_owned(),
                true,
                Fate::Unknown,
            ),
        ] {
            assert_eq!(fate(body.as_bytes(), deleting), fate_expected, "{what}");
        }
    }
}
