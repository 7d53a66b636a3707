//! The meaning of a request to the API server, read from its line and headers alone.
//!
//! Promise: [`RequestSeen::parse`] is pure and total. Every request gets a value, and for resource requests
//! the verb, group, resource, namespace and name are those that the API server itself derives for
//! authorization. Two differences, on purpose: a server-side apply is a verb of its own
//! ([`RequestVerb::Apply`], the server says `patch`), and a Namespace object has no namespace (the server
//! says it is in itself).
//!
//! It never looks into a body, so a `create` has no name, and a patch that happens to change nothing is still
//! a write.

use std::borrow::Cow;
use std::fmt;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Uri};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

/// The verb of a request, in the API server's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestVerb {
    /// Reads one object, or a path that is no resource (`/version`, discovery).
    Get,
    /// Reads a collection.
    List,
    /// Reads a collection's changes as a stream.
    Watch,
    /// `POST`, also to subresources (`pods/eviction`).
    Create,
    /// An update: `PUT`.
    Update,
    /// `PATCH` of any kind but server-side apply.
    Patch,
    /// `PATCH` whose content type says server-side apply.
    Apply,
    /// Deletes one object.
    Delete,
    /// Deletes what a selector finds.
    DeleteCollection,
    /// Anything else, such as `OPTIONS`, or a `POST` to a path that is no resource.
    Other,
}

impl RequestVerb {
    /// The verbs that may change an object.
    pub const WRITES: [Self; 6] =
        [Self::Create, Self::Update, Self::Patch, Self::Apply, Self::Delete, Self::DeleteCollection];

    /// Returns true if the verb may change an object.
    pub fn is_write(self) -> bool {
        Self::WRITES.contains(&self)
    }
}

impl fmt::Display for RequestVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        })
    }
}

/// One request, as the proxy understood it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSeen {
    /// The verb of the request.
    pub verb: RequestVerb,
    /// The API group; empty for the core group and for paths that are no resource.
    pub group: String,
    /// The API version; empty for paths that are no resource.
    pub version: String,
    /// The plural resource name (`configmaps`); `None` for paths that are no resource.
    pub resource: Option<String>,
    /// The subresource (`status`, `scale`, `exec`).
    pub subresource: Option<String>,
    /// The namespace, where the path has one.
    pub namespace: Option<String>,
    /// The object's name: from the path, or from a `metadata.name=` field selector on a list or watch.
    pub name: Option<String>,
    /// The path as it was sent, without the query.
    pub path: String,
    /// The `User-Agent` header. Note that kube sends none by default.
    pub user_agent: Option<String>,
}

impl RequestSeen {
    /// Reads a request's line and headers.
    pub fn parse(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let target = Target::parse(uri.path());
        let query = Query(uri.query().unwrap_or_default());
        let verb = verb(method, headers, &target, &query);
        let named_by_selector =
            matches!(verb, RequestVerb::List | RequestVerb::Watch | RequestVerb::DeleteCollection);
        let name = target.name.or_else(|| if named_by_selector { query.selected_name() } else { None });
        Self {
            verb,
            group: target.group,
            version: target.version,
            resource: target.resource,
            subresource: target.subresource,
            namespace: target.namespace,
            name,
            path: uri.path().to_owned(),
            user_agent: headers
                .get(USER_AGENT)
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
        }
    }
}

impl fmt::Display for RequestSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(resource) = &self.resource else {
            return write!(f, "{} {}", self.verb, self.path);
        };
        write!(f, "{} {resource}", self.verb)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

/// The target of a request's path.
#[derive(Default)]
struct Target {
    group: String,
    version: String,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// The deprecated `/api/v1/watch/…` form.
    watch_prefix: bool,
}

impl Target {
    fn parse(path: &str) -> Self {
        let segments: Vec<Cow<'_, str>> = path.trim_matches('/').split('/').map(percent_decode).collect();
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        match segments.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => Self::resource("", version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => Self::resource(group, version, rest),
            _ => Self::default(),
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch_prefix, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        // Only these two follow a namespace's name without being a resource inside of it.
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize", ..] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let segment = |index: usize| rest.get(index).map(|segment| (*segment).to_owned());
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: segment(0),
            name: segment(1),
            subresource: segment(2),
            namespace: namespace.map(str::to_owned),
            watch_prefix,
        }
    }
}

fn verb(method: &Method, headers: &HeaderMap, target: &Target, query: &Query<'_>) -> RequestVerb {
    let reads = method == Method::GET || method == Method::HEAD;
    if target.resource.is_none() {
        return if reads { RequestVerb::Get } else { RequestVerb::Other };
    }
    let collection = target.name.is_none();
    match *method {
        Method::GET | Method::HEAD if target.watch_prefix => RequestVerb::Watch,
        Method::GET | Method::HEAD if collection && query.watches() => RequestVerb::Watch,
        Method::GET | Method::HEAD if collection => RequestVerb::List,
        Method::GET | Method::HEAD => RequestVerb::Get,
        Method::POST => RequestVerb::Create,
        Method::PUT => RequestVerb::Update,
        Method::PATCH if is_apply(headers) => RequestVerb::Apply,
        Method::PATCH => RequestVerb::Patch,
        Method::DELETE if collection => RequestVerb::DeleteCollection,
        Method::DELETE => RequestVerb::Delete,
        _ => RequestVerb::Other,
    }
}

fn is_apply(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| {
            let kind = kind.trim();
            kind.eq_ignore_ascii_case("application/apply-patch+yaml")
                || kind.eq_ignore_ascii_case("application/apply-patch+cbor")
        })
}

struct Query<'a>(&'a str);

impl Query<'_> {
    fn first(&self, key: &str) -> Option<String> {
        self.0.split('&').find_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(name) == key).then(|| percent_decode(&value.replace('+', " ")).into_owned())
        })
    }

    /// The server's reading of a boolean parameter: present and not `false` or `0`.
    fn watches(&self) -> bool {
        self.first("watch").is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    fn selected_name(&self) -> Option<String> {
        self.first("fieldSelector")?.split(',').find_map(|term| {
            let name = term.trim().strip_prefix("metadata.name=")?;
            let name = name.strip_prefix('=').unwrap_or(name);
            (!name.is_empty()).then(|| name.to_owned())
        })
    }
}

/// Decodes `%xx`; what is no valid escape stays as it is.
fn percent_decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn seen(method: &str, target: &str, content_type: Option<&'static str>) -> RequestSeen {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        RequestSeen::parse(&method, &target.parse().unwrap(), &headers)
    }

    /// One line a case: `verb group/version resource/subresource namespace name`, `-` for what is absent.
    fn summary(request: &RequestSeen) -> String {
        let or_dash = |field: &Option<String>| field.clone().unwrap_or_else(|| "-".to_owned());
        format!(
            "{} {}/{} {}/{} {} {}",
            request.verb,
            request.group,
            request.version,
            or_dash(&request.resource),
            or_dash(&request.subresource),
            or_dash(&request.namespace),
            or_dash(&request.name)
        )
    }

    const TABLE: &str = "
        GET /api/v1/namespaces/x/configmaps/y => get /v1 configmaps/- x y
        HEAD /api/v1/namespaces/x/configmaps/y => get /v1 configmaps/- x y
        GET /api/v1/namespaces/x/configmaps => list /v1 configmaps/- x -
        GET /api/v1/configmaps?limit=500 => list /v1 configmaps/- - -
        GET /api/v1/configmaps?watch=true => watch /v1 configmaps/- - -
        GET /api/v1/configmaps?allowWatchBookmarks=true&watch=1 => watch /v1 configmaps/- - -
        GET /api/v1/configmaps?watch => watch /v1 configmaps/- - -
        GET /api/v1/configmaps?watch=false => list /v1 configmaps/- - -
        GET /api/v1/configmaps?watch=0 => list /v1 configmaps/- - -
        GET /api/v1/configmaps?watchful=true => list /v1 configmaps/- - -
        GET /api/v1/namespaces/x/pods/p?watch=true => get /v1 pods/- x p
        GET /api/v1/namespaces/x/secrets?&watch=true&fieldSelector=metadata.name%3Ds => watch /v1 secrets/- x s
        GET /api/v1/namespaces/x/pods?fieldSelector=spec.nodeName%3Dn%2Cmetadata.name%3D%3Dp => list /v1 pods/- x p
        GET /api/v1/pods?fieldSelector=metadata.name!=p => list /v1 pods/- - -
        GET /api/v1/watch/namespaces/x/pods/p => watch /v1 pods/- x p
        POST /api/v1/namespaces/x/configmaps => create /v1 configmaps/- x -
        PUT /api/v1/namespaces/x/configmaps/y => update /v1 configmaps/- x y
        DELETE /api/v1/namespaces/x/configmaps/y => delete /v1 configmaps/- x y
        DELETE /api/v1/namespaces/x/configmaps => deletecollection /v1 configmaps/- x -
        PUT /apis/apps/v1/namespaces/x/deployments/d/status => update apps/v1 deployments/status x d
        PATCH /apis/apps/v1/namespaces/x/deployments/d/scale => patch apps/v1 deployments/scale x d
        POST /api/v1/namespaces/x/pods/p/eviction => create /v1 pods/eviction x p
        GET /api/v1/namespaces/x/pods/p/exec?command=sh => get /v1 pods/exec x p
        GET /api/v1/namespaces/x/services/s/proxy/a/b => get /v1 services/proxy x s
        GET /api/v1/namespaces => list /v1 namespaces/- - -
        GET /api/v1/namespaces?watch=true => watch /v1 namespaces/- - -
        GET /api/v1/namespaces/x => get /v1 namespaces/- - x
        PUT /api/v1/namespaces/x/finalize => update /v1 namespaces/finalize - x
        PATCH /api/v1/namespaces/x/status => patch /v1 namespaces/status - x
        GET /api/v1/nodes/n => get /v1 nodes/- - n
        DELETE /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode => delete rbac.authorization.k8s.io/v1 clusterroles/- - system:node
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews => create authorization.k8s.io/v1 selfsubjectaccessreviews/- - -
        GET /apis/goharbor.io/v1beta1/namespaces/x/harborclusters/h/ => get goharbor.io/v1beta1 harborclusters/- x h
        GET /version => get / -/- - -
        GET /healthz?verbose => get / -/- - -
        GET / => get / -/- - -
        GET /api => get / -/- - -
        GET /api/v1 => get / -/- - -
        GET /apis/apps/v1 => get / -/- - -
        GET /openapi/v3/apis/apps/v1 => get / -/- - -
        POST /version => other / -/- - -
        OPTIONS /api/v1/configmaps => other /v1 configmaps/- - -
    ";

    #[test]
    fn paths_are_read_as_the_api_server_reads_them() {
        for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (request, expected) = line.split_once(" => ").unwrap();
            let (method, target) = request.split_once(' ').unwrap();
            assert_eq!(summary(&seen(method, target, None)), expected, "{request}");
        }
    }

    #[test]
    fn an_apply_is_told_from_other_patches_by_its_content_type() {
        let path = "/api/v1/namespaces/x/configmaps/y?fieldManager=m";
        for (content_type, expected) in [
            (Some("application/apply-patch+yaml"), RequestVerb::Apply),
            (Some("application/apply-patch+cbor"), RequestVerb::Apply),
            (Some("Application/Apply-Patch+YAML; charset=utf-8"), RequestVerb::Apply),
            (Some("application/merge-patch+json"), RequestVerb::Patch),
            (Some("application/json-patch+json"), RequestVerb::Patch),
            (None, RequestVerb::Patch),
        ] {
            assert_eq!(seen("PATCH", path, content_type).verb, expected, "{content_type:?}");
        }
    }

    #[test]
    fn escapes_that_are_no_escapes_stay_as_they_are() {
        for (text, expected) in
            [("a%3Ab", "a:b"), ("100%", "100%"), ("%2", "%2"), ("%zz", "%zz"), ("%c3%a4", "ä")]
        {
            assert_eq!(percent_decode(text), expected);
        }
    }

    #[test]
    fn a_request_prints_what_it_does_to_what() {
        for (method, target, expected) in [
            ("PUT", "/apis/apps/v1/namespaces/x/deployments/d/status", "update deployments.apps/status x/d"),
            ("GET", "/api/v1/namespaces/x/pods?watch=1", "watch pods in x"),
            ("GET", "/api/v1/nodes/n", "get nodes n"),
            ("GET", "/api/v1/nodes", "list nodes"),
            ("GET", "/version?timeout=32s", "get /version"),
        ] {
            assert_eq!(seen(method, target, None).to_string(), expected);
        }
    }
}
