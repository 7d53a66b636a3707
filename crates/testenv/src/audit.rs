//! Requests, counted from the API server's own audit log.
//!
//! What a client claims to have sent proves nothing; what the server logged does.
//! A line is on disk before the client has its answer, so a test that awaited its
//! calls may count at once. A watch is counted when it opens, once.

mod decisions;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;

use crate::error::{Error, Result};

/// A moment in the audit log.
///
/// The effect of a request can be seen before its line is in the log: the line is written with the answer. A
/// request that the server received before the mark therefore does not count as one since the mark, wherever
/// its line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The length of the log.
    place: u64,
    /// Microseconds since 1970, as precise as the log is.
    time: i64,
}

/// The audit log of one control plane.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// One request, as the API server saw it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Request {
    /// The user that sent the request; for a service account `system:serviceaccount:<namespace>:<name>`.
    pub user: String,
    /// The program, by its own words.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The plural of the kind; empty for paths such as `/version`.
    pub resource: String,
    /// `status`, `scale`, …, or empty.
    pub subresource: String,
    /// The object's namespace, or empty.
    pub namespace: String,
    /// The object's name, or empty.
    pub name: String,
    /// The status code of the answer.
    pub code: u16,
    /// The path and query.
    pub uri: String,
    /// The time at which the server received the request.
    pub received: Option<Timestamp>,
}

impl Request {
    /// Returns true if the request changes the cluster, or tried to.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch" | "head" | "options")
    }
}

impl AuditLog {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The place where the log ends now.
    pub fn mark(&self) -> Result<Mark> {
        let time = Timestamp::now().as_microsecond();
        let meta = std::fs::metadata(&self.path).map_err(Error::file(&self.path))?;
        Ok(Mark { place: meta.len(), time })
    }

    /// The requests since `from`.
    pub fn since(&self, from: Mark) -> Result<Requests> {
        self.between(from, Mark { place: u64::MAX, time: i64::MAX })
    }

    /// The requests between two marks.
    pub fn between(&self, from: Mark, to: Mark) -> Result<Requests> {
        let mut file = File::open(&self.path).map_err(Error::file(&self.path))?;
        file.seek(SeekFrom::Start(from.place)).map_err(Error::file(&self.path))?;
        let mut lines = BufReader::new(file);
        let mut place = from.place;
        let mut line = Vec::new();
        let mut reader = Reader { since: from.time, ..Reader::default() };
        while place < to.place {
            line.clear();
            let read = lines.read_until(b'\n', &mut line).map_err(Error::file(&self.path))?;
            // A line without its end is still being written: it is of the future.
            if read == 0 || line.last() != Some(&b'\n') {
                break;
            }
            place += read as u64;
            reader.take(&line);
        }
        Ok(Requests(reader.requests))
    }
}

/// Makes requests of log lines; a long-running request has two of them.
#[derive(Default)]
struct Reader {
    /// The earliest time of requests that count.
    since: i64,
    started: HashSet<String>,
    requests: Vec<Request>,
}

impl Reader {
    fn take(&mut self, line: &[u8]) {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else {
            return;
        };
        let long_running = entry.verb == "watch";
        let count = match entry.stage.as_str() {
            "ResponseStarted" => {
                let new = self.started.insert(entry.audit_id.clone());
                new && long_running
            }
            // A watch that was refused has no start; one that was accepted was
            // counted at its start, be it before the mark.
            "ResponseComplete" | "Panic" => {
                let refused = entry.response_status.code >= 400;
                !long_running || (refused && !self.started.contains(&entry.audit_id))
            }
            _ => false,
        };
        let received = entry.request_received_timestamp.map(Timestamp::as_microsecond);
        if count && received.is_none_or(|received| received >= self.since) {
            self.requests.push(entry.into());
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(rename = "requestURI", default)]
    request_uri: String,
    #[serde(default)]
    verb: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    request_received_timestamp: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl From<Entry> for Request {
    fn from(entry: Entry) -> Self {
        Self {
            user: entry.user.username,
            user_agent: entry.user_agent,
            verb: entry.verb,
            resource: entry.object_ref.resource,
            subresource: entry.object_ref.subresource,
            namespace: entry.object_ref.namespace,
            name: entry.object_ref.name,
            code: entry.response_status.code,
            uri: entry.request_uri,
            received: entry.request_received_timestamp,
        }
    }
}

/// Requests in the order in which the server finished them. Filters narrow them
/// down; what is left is counted, or printed as a table when an assertion fails.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// Keeps the requests for which `keep` returns true.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&Request) -> bool) -> Self {
        Self(self.0.iter().filter(|request| keep(request)).cloned().collect())
    }

    /// Keeps the requests of one user.
    #[must_use]
    pub fn by_user(&self, user: &str) -> Self {
        self.filter(|request| request.user == user)
    }

    /// Keeps the requests whose user agent begins with this text.
    #[must_use]
    pub fn by_agent(&self, prefix: &str) -> Self {
        self.filter(|request| request.user_agent.starts_with(prefix))
    }

    /// Keeps the requests about objects in one namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        self.filter(|request| request.namespace == namespace)
    }

    /// Keeps the requests with this verb.
    #[must_use]
    pub fn verb(&self, verb: &str) -> Self {
        self.filter(|request| request.verb == verb)
    }

    /// Keeps the requests about this resource, by its plural name.
    #[must_use]
    pub fn resource(&self, resource: &str) -> Self {
        self.filter(|request| request.resource == resource)
    }

    /// Keeps the requests with this status code.
    #[must_use]
    pub fn code(&self, code: u16) -> Self {
        self.filter(|request| request.code == code)
    }

    /// Keeps the requests that change the cluster, or tried to.
    #[must_use]
    pub fn writes(&self) -> Self {
        self.filter(Request::is_write)
    }

    /// The number of requests.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no requests.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.0.iter()
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: BTreeMap<[&str; 4], BTreeMap<u16, usize>> = BTreeMap::new();
        for request in &self.0 {
            let row = [&*request.user, &*request.verb, &*request.resource, &*request.subresource];
            *counts.entry(row).or_default().entry(request.code).or_default() += 1;
        }
        writeln!(f, "{} requests", self.0.len())?;
        for ([user, verb, resource, subresource], codes) in counts {
            let slash = if subresource.is_empty() { "" } else { "/" };
            for (code, count) in codes {
                writeln!(f, "{count:>6}  {verb:<16} {resource}{slash}{subresource:<20} {code}  {user}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn line(id: &str, stage: &str, verb: &str, code: u16) -> String {
        format!(
            r#"{{"kind":"Event","auditID":"{id}","stage":"{stage}","verb":"{verb}","requestURI":"/x","user":{{"username":"u"}},"userAgent":"t/1","objectRef":{{"resource":"pods","namespace":"n"}},"responseStatus":{{"metadata":{{}},"code":{code}}}}}"#
        ) + "\n"
    }

    fn at(place: u64) -> Mark {
        Mark { place, time: 0 }
    }

    fn log(lines: &[String]) -> (tempfile::NamedTempFile, AuditLog) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines.concat().as_bytes()).unwrap();
        let log = AuditLog::new(file.path());
        (file, log)
    }

    #[test]
    fn a_watch_counts_once_when_it_opens() {
        let (_file, log) = log(&[
            line("1", "ResponseStarted", "watch", 200),
            line("2", "ResponseComplete", "get", 200),
            line("1", "ResponseComplete", "watch", 200),
        ]);
        let requests = log.since(at(0)).unwrap();
        assert_eq!(requests.verb("watch").count(), 1);
        assert_eq!(requests.verb("get").count(), 1);
    }

    #[test]
    fn a_watch_opened_before_the_mark_is_not_counted_when_it_ends() {
        let lines = [line("1", "ResponseStarted", "watch", 200), line("1", "ResponseComplete", "watch", 200)];
        let (_file, log) = log(&lines);
        assert_eq!(log.since(at(lines[0].len() as u64)).unwrap().count(), 0);
    }

    #[test]
    fn a_refused_watch_counts() {
        let (_file, log) = log(&[line("1", "ResponseComplete", "watch", 403)]);
        assert_eq!(log.since(at(0)).unwrap().code(403).count(), 1);
    }

    #[test]
    fn marks_bound_what_is_counted() {
        let lines =
            [line("1", "ResponseComplete", "create", 201), line("2", "ResponseComplete", "patch", 200)];
        let (mut file, log) = log(&lines[..1]);
        let mark = log.mark().unwrap();
        file.write_all(lines[1].as_bytes()).unwrap();
        let to = log.mark().unwrap();
        file.write_all(line("3", "ResponseComplete", "delete", 200).as_bytes()).unwrap();
        assert_eq!(log.between(mark, to).unwrap().iter().map(|r| &*r.verb).collect::<Vec<_>>(), ["patch"]);
        assert_eq!(log.since(mark).unwrap().writes().count(), 2);
    }

    #[test]
    fn a_request_that_was_received_before_the_mark_does_not_count_though_its_line_comes_after() {
        let received = |verb: &str, time: i64| {
            let time = Timestamp::from_microsecond(time).unwrap();
            let stamp = format!(r#""requestReceivedTimestamp":"{time}","verb""#);
            line("1", "ResponseComplete", verb, 200).replacen(r#""verb""#, &stamp, 1)
        };
        let (_file, log) = log(&[received("create", 999_999), received("patch", 1_000_000)]);
        let counted = log.since(Mark { place: 0, time: 1_000_000 }).unwrap();
        assert_eq!(counted.iter().map(|request| &*request.verb).collect::<Vec<_>>(), ["patch"]);
    }

    #[test]
    fn a_line_that_is_still_being_written_is_left_for_later() {
        let whole = line("1", "ResponseComplete", "get", 200);
        let (_file, log) = log(&[whole.clone(), whole[..40].to_owned()]);
        assert_eq!(log.since(at(0)).unwrap().count(), 1);
    }

    #[test]
    fn the_table_groups_requests_by_verb_and_resource() {
        let (_file, log) =
            log(&[line("1", "ResponseComplete", "get", 200), line("2", "ResponseComplete", "get", 404)]);
        let table = log.since(at(0)).unwrap().to_string();
        assert!(table.starts_with("2 requests\n"), "{table}");
        assert!(table.contains("200  u") && table.contains("404  u"), "{table}");
    }
}
