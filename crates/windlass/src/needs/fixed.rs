//! Answers without a cluster, for previews.

use super::answers::Answers;
use super::ask::{Answer, Ask};
use super::labelled::{AnyObjects, ListAsk};
use crate::live::Known;

/// Every object exists, and none has values.
pub(crate) struct Assumed;

impl Answers for Assumed {
    fn answer(&self, _: &Ask) -> Answer {
        Answer::Assumed
    }

    fn list(&self, _: &ListAsk) -> Known<AnyObjects> {
        Known::Known(Vec::new())
    }

    fn is_assumed(&self) -> bool {
        true
    }
}

/// Only these objects exist, each as JSON with its `kind`.
pub(crate) struct Among<'a>(pub(crate) &'a [serde_json::Value]);

impl Answers for Among<'_> {
    fn answer(&self, ask: &Ask) -> Answer {
        let matches = |object: &&serde_json::Value| {
            object["kind"] == *ask.source.resource.kind
                && object["metadata"]["name"] == *ask.source.key.name()
        };
        match self.0.iter().find(matches).map(ask.decode) {
            Some(Ok(content)) => Answer::There(content),
            Some(Err(unfit)) => Answer::Unknown(format!("it cannot be decoded: {unfit}")),
            None => Answer::Absent,
        }
    }

    fn list(&self, ask: &ListAsk) -> Known<AnyObjects> {
        Known::Known(ask.among(self.0))
    }
}
