//! The report for programs.

use std::fmt::Display;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{Direction, NodeReport, Outcome, Report, Summary};

/// An object of `direction`, `seconds`, `summary` and `nodes`.
///
/// Each node has an `id`, an `outcome` (its [label](Outcome::label)), and what applies
/// of `message` (the reason or the error), `because_of` (the root), `blocked_by` (the
/// next in the chain towards it, so that the whole costs no more than its nodes),
/// `seconds` and `after`.
impl<E: Display, W: Display> Serialize for Report<E, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Report", 4)?;
        let direction = match self.direction() {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        };
        object.serialize_field("direction", direction)?;
        object.serialize_field("seconds", &self.elapsed().as_secs_f64())?;
        object.serialize_field("summary", &self.summary())?;
        object.serialize_field("nodes", &Rows(self))?;
        object.end()
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Summary", 6)?;
        object.serialize_field("ready", &self.ready)?;
        object.serialize_field("waiting", &self.waiting)?;
        object.serialize_field("failed", &self.failed)?;
        object.serialize_field("skipped", &self.skipped)?;
        object.serialize_field("cancelled", &self.cancelled)?;
        object.serialize_field("planned", &self.planned)?;
        object.end()
    }
}

struct Rows<'r, E, W>(&'r Report<E, W>);

impl<E: Display, W: Display> Serialize for Rows<'_, E, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.nodes().map(Row::of))
    }
}

#[derive(Serialize)]
struct Row<'r> {
    id: &'r str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because_of: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<&'r str>,
}

impl<'r> Row<'r> {
    fn of<E: Display, W: Display>(node: NodeReport<'r, E, W>) -> Self {
        let (message, because_of) = match node.outcome() {
            Outcome::Waiting(reason) | Outcome::Planned(reason) => (Some(reason.to_string()), None),
            Outcome::Failed(failure) => (Some(failure.to_string()), None),
            Outcome::Skipped { because_of } => (None, Some(&**because_of)),
            Outcome::Ready | Outcome::Cancelled => (None, None),
        };
        Row {
            id: node.id(),
            outcome: node.outcome().label(),
            message,
            because_of,
            blocked_by: node.blocker().map(NodeReport::id),
            seconds: node.duration().map(|duration| duration.as_secs_f64()),
            after: node.after().map(NodeReport::id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::render::tests::sample;

    #[tokio::test(start_paused = true)]
    async fn a_program_finds_every_node_and_what_applies_to_it() {
        let report = sample().await;
        let expected = json!({
            "direction": "forward",
            "seconds": 1.5,
            "summary": {"ready": 1, "waiting": 1, "failed": 1, "skipped": 2, "cancelled": 1, "planned": 0},
            "nodes": [
                {"id": "config", "outcome": "ready", "seconds": 0.0},
                {"id": "data \"base\"", "outcome": "failed", "message": "refused:\n#1 \\o/", "seconds": 0.0},
                {"id": "cache", "outcome": "waiting", "message": "0 of 1 <ready>", "seconds": 0.012, "after": ["config"]},
                {"id": "core", "outcome": "skipped", "because_of": "data \"base\"", "blocked_by": "data \"base\"",
                 "after": ["config", "data \"base\""]},
                {"id": "portal", "outcome": "skipped", "because_of": "data \"base\"", "blocked_by": "core",
                 "after": ["core", "cache"]},
                {"id": "never", "outcome": "cancelled", "seconds": 1.5},
            ],
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
    }
}
