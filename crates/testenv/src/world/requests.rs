//! The requests of the operator, as the API server counts them.

use super::{Running, World, rights};
use crate::audit::{Mark, Request, Requests};
use crate::error::{Error, Result};

impl World {
    /// The place in the audit log at which it ends now.
    pub fn mark(&self) -> Result<Mark> {
        self.env.requests()?.mark()
    }

    /// The requests of the operator since then.
    pub fn requests(&self, since: Mark) -> Result<Requests> {
        Ok(self.env.requests()?.since(since)?.by_user(self.user.name()))
    }

    /// The writes of the operator since then, events apart, in order: `patch deployments web-1`.
    pub fn writes(&self, since: Mark) -> Result<Vec<String>> {
        let writes = self.requests(since)?.writes();
        Ok(writes.iter().filter(|request| request.resource != "events").map(sentence).collect())
    }

    /// The end of a test: stops the operator in order. An error if it was ever refused a request for lack of
    /// a right.
    pub async fn end(&self, operator: Running) -> Result<()> {
        operator.stop().await?;
        self.never_refused()
    }

    /// An error if the operator was refused a request for lack of a [right](rights::missing) since the world
    /// began.
    pub fn never_refused(&self) -> Result<()> {
        let refused = rights::missing(&self.requests(self.begun)?);
        if refused.is_empty() { Ok(()) } else { Err(Error::MissingRight(refused.to_string())) }
    }
}

fn sentence(request: &Request) -> String {
    let slash = if request.subresource.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{} {}", request.verb, request.resource, request.subresource, request.name)
}

/// Objects that were written or deleted, as `deployments sample-harbor-core`, each where that happened for
/// the first time. Subresources and refused requests do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(Vec<String>);

impl Written {
    /// The objects that were created or changed.
    pub fn of(requests: &Requests) -> Self {
        Self::in_order(&requests.writes().filter(|request| request.verb != "delete"))
    }

    /// The objects that were deleted.
    pub fn deleted(requests: &Requests) -> Self {
        Self::in_order(&requests.verb("delete"))
    }

    fn in_order(requests: &Requests) -> Self {
        let mut objects = Vec::new();
        let done = requests.filter(|request| request.subresource.is_empty() && request.code < 300);
        for request in done.iter() {
            let object = format!("{} {}", request.resource, request.name);
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        Self(objects)
    }

    /// All of them, in order.
    pub fn objects(&self) -> &[String] {
        &self.0
    }

    /// An error if one object does not come before another, or if one of them is missing.
    pub fn before(&self, first: &str, then: &str) -> Result<()> {
        let place = |object: &str| self.0.iter().position(|written| written == object);
        let wrong = |why: String| Err(Error::Order(format!("{why}: {:#?}", self.0)));
        match (place(first), place(then)) {
            (None, _) => wrong(format!("no {first}")),
            (_, None) => wrong(format!("no {then}")),
            (Some(first_place), Some(then_place)) if first_place < then_place => Ok(()),
            _ => wrong(format!("{first} is not before {then}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_judged_by_the_first_write_of_each() {
        let written = Written(["secrets a", "deployments b"].map(str::to_owned).into());
        assert!(written.before("secrets a", "deployments b").is_ok());
        let error = written.before("deployments b", "secrets a").unwrap_err().to_string();
        assert!(error.contains("deployments b is not before secrets a"), "{error}");
        let error = written.before("secrets a", "services c").unwrap_err().to_string();
        assert!(error.contains("no services c"), "{error}");
    }
}
