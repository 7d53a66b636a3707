//! Points: a write, and the disturbance that happens there.
//!
//! Promise: a point is named by what is written, not by when, so that the same name means the same write in
//! every repetition, also of an operator that writes several objects at once.

use std::collections::BTreeMap;
use std::fmt;

use crate::proxy::{Match, RequestSeen, RequestVerb};

/// Stands for the namespace of the repetition, which has another name each time.
pub(super) const NAMESPACE: &str = "{namespace}";

/// The kind of disturbance at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Family {
    /// The operator is killed just before the write: the request never reaches the server.
    Before,
    /// The operator is killed just after the write: it has the answer, and nothing that it sends next reaches
    /// the server.
    After,
    /// The operator is killed while it waits for the answer of a write that the server has committed.
    Lost,
    /// The operator is killed just before the write, and its next life just before its first write.
    Twice,
    /// The operator lives and sees its connection close instead of the answer to a write that the server has
    /// committed.
    Unanswered,
    /// The operator's watches stand still from before the write until it has nothing more to do, then go on.
    Stale,
    /// The operator is cut off after a step, an object is changed and changed back, and the operator
    /// is connected again. Its points are not writes but [reversals](super::Torture::reversal).
    Unobserved,
    /// The leader is killed just before the write, and a warm standby takes over when the
    /// [Lease](super::Torture::lease) has expired.
    Handover,
    /// The leader is suspended at the write, as by SIGSTOP, until the Lease has expired and a warm standby
    /// leads; then it goes on. It must not write any more.
    Frozen,
}

impl Family {
    /// All families of disturbances.
    pub const ALL: [Self; 9] = [
        Self::Before,
        Self::After,
        Self::Lost,
        Self::Twice,
        Self::Unanswered,
        Self::Stale,
        Self::Unobserved,
        Self::Handover,
        Self::Frozen,
    ];

    /// The families that kill the operator at each write.
    pub const KILLS: [Self; 3] = [Self::Before, Self::After, Self::Lost];

    /// Returns true if the family has a point for every write.
    pub(super) fn is_about_writes(self) -> bool {
        self != Self::Unobserved
    }

    /// Returns true if the family needs a leader and a standby, and so a declared Lease.
    pub(super) fn needs_standby(self) -> bool {
        matches!(self, Self::Handover | Self::Frozen)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Lost => "lost",
            Self::Twice => "twice",
            Self::Unanswered => "unanswered",
            Self::Stale => "stale",
            Self::Unobserved => "unobserved",
            Self::Handover => "handover",
            Self::Frozen => "frozen",
        })
    }
}

/// The description of a write, without the repetition's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Write {
    verb: RequestVerb,
    group: String,
    resource: String,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Write {
    /// Reads a request; `None` if it is no write to a resource. `generated` maps the names that the server
    /// made up to patterns.
    pub(super) fn of(
        request: &RequestSeen,
        namespace: &str,
        generated: &BTreeMap<String, String>,
    ) -> Option<Self> {
        if !request.verb.is_write() {
            return None;
        }
        let general = |text: &String| text.replace(namespace, NAMESPACE);
        Some(Self {
            verb: request.verb,
            group: request.group.clone(),
            resource: request.resource.clone()?,
            subresource: request.subresource.clone(),
            namespace: request.namespace.as_ref().map(general),
            name: request.name.as_ref().map(|name| generated.get(name).unwrap_or(name)).map(general),
        })
    }

    /// Matches this write in the repetition that has this namespace.
    pub(super) fn matching(&self, namespace: &str) -> Match {
        let here = |text: &String| text.replace(NAMESPACE, namespace);
        let resource = match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource),
            None => self.resource.clone(),
        };
        let mut wanted = Match::verb(self.verb).group(&self.group).resource(resource);
        if let Some(namespace) = &self.namespace {
            wanted = wanted.namespace(here(namespace));
        }
        if let Some(name) = &self.name {
            wanted = wanted.name(here(name));
        }
        wanted
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str("/")?;
        match self.namespace.as_deref() {
            None | Some(NAMESPACE) => {}
            Some(other) => write!(f, "{other}:")?,
        }
        f.write_str(self.name.as_deref().unwrap_or("-"))?;
        match &self.subresource {
            Some(subresource) => write!(f, "/{subresource}"),
            None => Ok(()),
        }
    }
}

/// The moment at which a point disturbs the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Trigger {
    /// The n-th write of this description, counted from 1.
    Write(Write, u64),
    /// After the step of this name, the reversal of that name.
    Step(String, String),
}

/// One way in which a scenario is disturbed: a [`Family`] and the moment it applies to.
///
/// The text of a point names it for ever, as in `before:create:secrets/token#1` or
/// `lost:apply:deployments.apps/web/status#2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    pub(super) family: Family,
    pub(super) trigger: Trigger,
}

impl Point {
    /// The kind of disturbance at this point.
    pub fn family(&self) -> Family {
        self.family
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.trigger {
            Trigger::Write(write, occurrence) => write!(f, "{}:{write}#{occurrence}", self.family),
            Trigger::Step(step, reversal) => write!(f, "{}:{step}:{reversal}", self.family),
        }
    }
}

/// Numbers the writes of a run: each with how many of its description came before it, itself included.
pub(super) fn triggers(writes: impl IntoIterator<Item = Write>) -> Vec<Trigger> {
    let mut counts: BTreeMap<Write, u64> = BTreeMap::new();
    writes
        .into_iter()
        .map(|write| {
            let count = counts.entry(write.clone()).or_default();
            *count += 1;
            Trigger::Write(write, *count)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn request(method: &str, path: &str) -> RequestSeen {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        RequestSeen::parse(&method, &path.parse().unwrap(), &HeaderMap::new())
    }

    fn write(method: &str, path: &str) -> Option<Write> {
        Write::of(&request(method, path), "ns-1", &BTreeMap::from([("b-x7".to_owned(), "b-*".to_owned())]))
    }

    #[test]
    fn points_are_named_by_what_is_written() {
        let paths = [
            ("PUT", "/api/v1/namespaces/ns-1/secrets/a"),
            ("PATCH", "/apis/apps/v1/namespaces/ns-1/deployments/a/status"),
            ("PUT", "/api/v1/namespaces/ns-1/secrets/a"),
            ("PUT", "/api/v1/namespaces/other/secrets/a"),
            ("DELETE", "/api/v1/namespaces/ns-1/pods/b-x7"),
            ("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/ns-1-role"),
            ("DELETE", "/api/v1/namespaces/ns-1/pods"),
        ];
        let writes = paths.iter().filter_map(|(method, path)| write(method, path));
        let names: Vec<String> = triggers(writes)
            .into_iter()
            .map(|trigger| Point { family: Family::Lost, trigger }.to_string())
            .collect();
        assert_eq!(
            names,
            [
                "lost:update:secrets/a#1",
                "lost:patch:deployments.apps/a/status#1",
                "lost:update:secrets/a#2",
                "lost:update:secrets/other:a#1",
                "lost:delete:pods/b-*#1",
                "lost:delete:clusterroles.rbac.authorization.k8s.io/{namespace}-role#1",
                "lost:deletecollection:pods/-#1",
            ]
        );
    }

    #[test]
    fn reads_are_no_points() {
        assert_eq!(write("GET", "/api/v1/namespaces/ns-1/secrets/a"), None);
        assert_eq!(write("POST", "/version"), None);
    }

    #[test]
    fn a_write_is_found_again_in_another_namespace() {
        let role = write("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/ns-1-role").unwrap();
        let there = request("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/ns-2-role");
        assert!(role.matching("ns-2").matches(&there));
        assert!(!role.matching("ns-3").matches(&there));
        let pod = write("DELETE", "/api/v1/namespaces/ns-1/pods/b-x7").unwrap();
        assert!(pod.matching("ns-2").matches(&request("DELETE", "/api/v1/namespaces/ns-2/pods/b-k2")));
    }
}
