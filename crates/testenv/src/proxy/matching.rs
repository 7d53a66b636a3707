//! Matching of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::request::{RequestSeen, RequestVerb};

/// A condition on requests. Everything that is set must hold; what is not set is not asked.
///
/// ```
/// use windlass_testenv::proxy::{Match, RequestVerb};
///
/// let status_of_one =
/// Match::verb(RequestVerb::Apply).resource("harborclusters/status").namespace("x").name("h");
/// assert_eq!(status_of_one.to_string(), "apply of harborclusters/status x/h");
///
/// let work = Match::writes().except("leases").except("events");
/// assert_eq!(work.to_string(), "write (but to leases, events)");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct Match {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verbs: Vec<RequestVerb>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    except: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
}

impl Match {
    /// Matches every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests of one verb. Note that a server-side apply is [`RequestVerb::Apply`], not
    /// [`RequestVerb::Patch`].
    pub fn verb(verb: RequestVerb) -> Self {
        Self::verbs([verb])
    }

    /// Requests of any of these verbs.
    pub fn verbs(verbs: impl IntoIterator<Item = RequestVerb>) -> Self {
        Self { verbs: verbs.into_iter().collect(), ..Self::default() }
    }

    /// Every request that may change an object.
    pub fn writes() -> Self {
        Self::verbs(RequestVerb::WRITES)
    }

    /// Matches every watch.
    pub fn watches() -> Self {
        Self::verb(RequestVerb::Watch)
    }

    /// Matches only this API group; `""` is the core group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Matches only this resource, written as in RBAC: `pods` is the objects themselves, `pods/status` one
    /// subresource, `pods/*` both the objects and every subresource.
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Excludes this resource (same notation); may be repeated.
    pub fn except(mut self, resource: impl Into<String>) -> Self {
        self.except.push(resource.into());
        self
    }

    /// Matches only this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Matches only the object of this name; a name that ends in `*` stands for all that begin so. A create
    /// is matched by name only if the proxy [reads](super::FaultProxy::name_creates) it: the name is in its
    /// body.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Matches only this exact path, without the query: for paths that are no resource, such as `/version`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Matches only clients whose `User-Agent` contains this text: tells the replicas of an operator apart.
    pub fn user_agent(mut self, part: impl Into<String>) -> Self {
        self.user_agent = Some(part.into());
        self
    }

    /// Returns true if the request matches.
    pub fn matches(&self, request: &RequestSeen) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&request.verb))
            && self.group.as_ref().is_none_or(|group| request.resource.is_some() && *group == request.group)
            && self.resource.as_ref().is_none_or(|pattern| is_resource(request, pattern))
            && !self.except.iter().any(|pattern| is_resource(request, pattern))
            && agrees(self.namespace.as_ref(), request.namespace.as_ref())
            && self.name.as_ref().is_none_or(|name| is_named(request, name))
            && agrees(self.path.as_ref(), Some(&request.path))
            && self.user_agent.as_ref().is_none_or(|part| {
                request.user_agent.as_ref().is_some_and(|agent| agent.contains(part.as_str()))
            })
    }
}

fn agrees(wanted: Option<&String>, found: Option<&String>) -> bool {
    wanted.is_none() || wanted == found
}

fn is_named(request: &RequestSeen, pattern: &str) -> bool {
    let Some(name) = request.name.as_deref() else {
        return false;
    };
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

fn is_resource(request: &RequestSeen, pattern: &str) -> bool {
    let (resource, subresource) = match pattern.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (pattern, None),
    };
    request.resource.as_deref() == Some(resource)
        && (subresource == Some("*") || subresource == request.subresource.as_deref())
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.verbs.is_empty() {
            f.write_str("request")?;
        } else if self.verbs == RequestVerb::WRITES {
            f.write_str("write")?;
        } else {
            let verbs: Vec<String> = self.verbs.iter().map(RequestVerb::to_string).collect();
            f.write_str(&verbs.join(" or "))?;
        }
        if let Some(resource) = &self.resource {
            write!(f, " of {resource}")?;
        }
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}")?,
            (Some(namespace), None) => write!(f, " in {namespace}")?,
            (None, Some(name)) => write!(f, " named {name}")?,
            (None, None) => {}
        }
        match self.group.as_deref() {
            Some("") => f.write_str(" of the core group")?,
            Some(group) => write!(f, " of group {group}")?,
            None => {}
        }
        if let Some(path) = &self.path {
            write!(f, " to {path}")?;
        }
        if let Some(agent) = &self.user_agent {
            write!(f, " by {agent:?}")?;
        }
        if !self.except.is_empty() {
            write!(f, " (but to {})", self.except.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::header::USER_AGENT;
    use http::{HeaderMap, HeaderValue, Method};

    use super::*;

    fn request(method: &Method, target: &str) -> RequestSeen {
        let headers = HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static("harbor-operator/a"))]);
        RequestSeen::parse(method, &target.parse().unwrap(), &headers)
    }

    #[test]
    fn every_condition_that_is_set_must_hold() {
        let status = request(&Method::PUT, "/apis/apps/v1/namespaces/x/deployments/d/status");
        let version = request(&Method::GET, "/version");
        let table = [
            (Match::any(), true, true),
            (Match::verb(RequestVerb::Update), true, false),
            (Match::verbs([RequestVerb::Get, RequestVerb::Update]), true, true),
            (Match::writes(), true, false),
            (Match::watches(), false, false),
            (Match::any().group("apps"), true, false),
            (Match::any().group(""), false, false),
            (Match::any().resource("deployments"), false, false),
            (Match::any().resource("deployments/status"), true, false),
            (Match::any().resource("deployments/scale"), false, false),
            (Match::any().resource("deployments/*"), true, false),
            (Match::any().except("deployments"), true, true),
            (Match::any().except("leases").except("deployments/*"), false, true),
            (Match::any().namespace("x").name("d"), true, false),
            (Match::any().namespace("y").name("d"), false, false),
            (Match::any().name("e"), false, false),
            (Match::any().name("d*"), true, false),
            (Match::any().name("e*"), false, false),
            (Match::any().path("/version"), false, true),
            (Match::any().user_agent("operator"), true, true),
            (Match::any().user_agent("kubectl"), false, false),
        ];
        for (wanted, of_status, of_version) in table {
            assert_eq!(wanted.matches(&status), of_status, "{wanted}: {status}");
            assert_eq!(wanted.matches(&version), of_version, "{wanted}: {version}");
        }
    }

    #[test]
    fn a_plain_resource_does_not_mean_its_subresources() {
        let scale = request(&Method::PATCH, "/apis/apps/v1/namespaces/x/deployments/d/scale");
        let object = request(&Method::PATCH, "/apis/apps/v1/namespaces/x/deployments/d");
        assert!(Match::any().resource("deployments").matches(&object));
        assert!(!Match::any().resource("deployments").matches(&scale));
        assert!(Match::any().resource("deployments/*").matches(&object));
    }
}
