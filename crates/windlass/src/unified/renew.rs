//! An object that is made anew before it is too old.
//!
//! Whether it is due is told from its metadata: an annotation says until when it is good, another what it was made from. So a look
//! costs no request, and the content of a Secret is read only when it is to be replaced.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use windlass_graph::Progress;
use windlass_runtime::meta::Meta;

use super::node::{Visited, Visitor, being_deleted, conflict};
use super::object::describe;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError, Reason};
use crate::metrics::NodeResult;
use crate::names::mark;
use crate::ownership;
use crate::plan::{Node, Verb};
use crate::renewal::Making;
use crate::secrecy::{Content, Random, hex};
use crate::seen::Wait;

const TOUCHED: &str = "somebody changed it";

impl Visitor<'_> {
    pub(super) async fn renewed(&self, node: &Node, done: &mut NodeResult) -> Visited {
        let Verb::Renew { resource, key, recipe, .. } = &node.draft.verb else {
            return Err(NodeError::terminal(Reason::DrawFailed, "it is not renewed"));
        };
        let kind = self.machine.kind(resource)?;
        let live = kind.get(key);
        if let Some(live) = &live {
            let meta = &live.live().metadata;
            if !self.owner.has(meta) && !self.take_back(live.live()) {
                let shell = self.shell(node, resource, key)?;
                return Err(self.collision(&shell, &describe(live.live())));
            }
            if meta.deleting {
                return Ok(being_deleted(live.live()));
            }
        }
        let from = self.made_from(node, recipe);
        let now = Timestamp::now();
        let stale = match &live {
            None => Some("it is missing"),
            Some(live) => stale(&live.live().metadata, &resource.api_version(), &from, now),
        };
        if let Some(why) = stale {
            if why == TOUCHED {
                self.stop_writers(node, key).await?;
            }
            let present = if live.is_some() { self.machine.desk.look(resource, key).await? } else { None };
            let desired = self.make(node, &from, now, present.as_ref()).await?;
            match &live {
                None => self.create(node, &desired, &from, done).await?,
                Some(live) => {
                    self.update(node, &desired, &from, &live.live().metadata, why, done).await?;
                }
            }
        }
        let Some(live) = kind.get(key) else {
            return Ok(Progress::Waiting(Wait::new("it has not been read back yet")));
        };
        let meta = &live.live().metadata;
        if let Some(due) = due(meta) {
            let mut again = self.again.lock();
            *again = Some(again.map_or(due, |sooner| sooner.min(due)));
        }
        self.contents.lock()[node.index] = Some(renewed_content(node, meta));
        Ok(Progress::Ready)
    }

    /// Asks the maker, with what is there. What it makes is what others in this run are made from.
    pub(super) async fn make(
        &self,
        node: &Node,
        from: &str,
        now: Timestamp,
        present: Option<&Value>,
    ) -> Result<Desired, NodeError> {
        let Verb::Renew { make, .. } = &node.draft.verb else {
            return Err(conflict("it is not renewed"));
        };
        let mut before = Vec::new();
        for index in &node.after {
            before.extend(self.body_of(*index).await?);
        }
        let broken = |error: DrawError| NodeError::terminal(Reason::DrawFailed, error.to_string());
        let mut random = Random::new();
        let mut making = Making { now, random: &mut random, present, before: &before };
        let (mut desired, due) = make(&mut making).map_err(broken)?;
        self.completion().mutate(node, &mut desired)?;
        self.completion().mark_as_ours(node, &mut desired)?;
        let data = desired.body.get("data").and_then(Value::as_object);
        let keys: Vec<&str> = data.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let keys = keys.join(",");
        desired.annotate(mark::DUE, due.to_string());
        desired.annotate(mark::MADE_FROM, format!("{from}:{keys}"));
        self.bodies.lock().insert(node.index, desired.body.clone());
        Ok(desired)
    }

    /// A renewed object of this run, with its content: read at most once.
    async fn body_of(&self, index: usize) -> Result<Option<Value>, NodeError> {
        if let Some(body) = self.bodies.lock().get(&index) {
            return Ok(Some(body.clone()));
        }
        let place = self.renewed.iter().find(|(at, ..)| *at == index);
        let Some((_, resource, key)) = place else { return Ok(None) };
        let Some(mut body) = self.machine.desk.look(resource, key).await? else {
            return Err(conflict("what it is made from has gone"));
        };
        body["kind"] = json!(resource.kind);
        self.bodies.lock().insert(index, body.clone());
        Ok(Some(body))
    }

    fn made_from(&self, node: &Node, recipe: &str) -> String {
        let is_renewed = |index: usize| self.renewed.iter().any(|(at, ..)| *at == index);
        made_from(node, recipe, &self.contents.lock(), is_renewed)
    }
}

/// What a renewed object is to be made from, as its annotation says: how, and of which versions of the renewed objects that it comes after.
pub(crate) fn made_from(
    node: &Node,
    recipe: &str,
    contents: &[Option<Content>],
    is_renewed: impl Fn(usize) -> bool,
) -> String {
    let mut hash = Sha256::new();
    hash.update(recipe.as_bytes());
    for index in node.after.iter().filter(|index| is_renewed(**index)) {
        hash.update([0]);
        hash.update(contents[*index].as_ref().map(|content| &*content.digest).unwrap_or_default());
    }
    hex(&hash.finalize()[..16])
}

/// The content of a renewed object that flows into what comes after it: another one whenever it was made anew.
pub(crate) fn renewed_content(node: &Node, meta: &Meta) -> Content {
    Content { id: node.draft.id.clone(), digest: version(meta).into_bytes() }
}

/// Why an object has to be made anew, if it has to be.
fn stale(meta: &Meta, api_version: &str, from: &str, now: Timestamp) -> Option<&'static str> {
    if due(meta).is_none_or(|due| due <= now) {
        return Some("it is due");
    }
    let made = meta.annotations.get(mark::MADE_FROM).map(|made| made.as_str().to_owned()).unwrap_or_default();
    let Some(keys) = made.strip_prefix(from).and_then(|rest| rest.strip_prefix(':')) else {
        return Some("what it is made from has changed");
    };
    let Some(entry) = meta.managed.iter().find(|entry| *entry.api_version == *api_version) else {
        return Some("it was written in another way");
    };
    let data: Map<String, Value> =
        keys.split(',').filter(|key| !key.is_empty()).map(|key| (key.to_owned(), "".into())).collect();
    let lost = !data.is_empty() && ownership::lost(&json!({"data": data}), &entry.fields()).is_some();
    lost.then_some(TOUCHED)
}

fn due(meta: &Meta) -> Option<Timestamp> {
    meta.annotations.get(mark::DUE)?.parse().ok()
}

/// Another one whenever it was made anew.
fn version(meta: &Meta) -> String {
    let said = |key| meta.annotations.get(key).map(|value| value.as_str().to_owned()).unwrap_or_default();
    format!("{} {} {}", meta.uid, said(mark::DUE), said(mark::MADE_FROM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;
    use windlass_runtime::meta::Keep;

    fn secret(due: &str, made: &str, fields: &Value) -> Live {
        let text = json!({"metadata": {"name": "a", "namespace": "n", "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d", "resourceVersion": "5",
            "annotations": {mark::DUE: due, mark::MADE_FROM: made},
            "managedFields": [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]}})
        .to_string();
        let keep = Keep::default().manager("m").annotation(mark::DUE).annotation(mark::MADE_FROM);
        keep.scope(|| serde_json::from_str(&text)).unwrap()
    }

    #[test]
    fn it_is_made_anew_when_due_or_made_from_something_else_or_touched() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let ours = json!({"f:data": {"f:tls.crt": {}, "f:tls.key": {}}});
        let stale = |due: &str, made: &str, fields: &Value| {
            super::stale(&secret(due, made, fields).metadata, "v1", "abc", now)
        };
        let later = "2026-01-01T00:00:01Z";
        assert_eq!(stale(later, "abc:tls.crt,tls.key", &ours), None);
        assert_eq!(stale("2026-01-01T00:00:00Z", "abc:tls.crt,tls.key", &ours), Some("it is due"));
        assert_eq!(stale("soon", "abc:tls.crt,tls.key", &ours), Some("it is due"));
        assert_eq!(stale(later, "abd:tls.crt,tls.key", &ours), Some("what it is made from has changed"));
        let theirs = json!({"f:data": {"f:tls.key": {}}});
        assert_eq!(stale(later, "abc:tls.crt,tls.key", &theirs), Some("somebody changed it"));
    }
}
