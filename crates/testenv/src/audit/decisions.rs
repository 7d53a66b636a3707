//! Decisions to delete, judged from the log alone.

use super::{Request, Requests};

impl Requests {
    /// The deletes that may have been decided from an owner older than their victim, in words.
    ///
    /// A cached owner may be older than an object that another replica has just created for it; who deletes
    /// the object because such an owner does not ask for it destroys what is wanted. Before a delete, the
    /// owner is therefore read from the server. This finds every successful delete of an object that was
    /// created in this log, with no read (get or list) of `owners` (a plural, `harbors`) in the object's
    /// namespace by the same replica between the creation and the delete. A replica is known by its user and
    /// its user agent: the read of a former leader does not excuse its successor. Replicas with one user
    /// agent are told apart by the [name](crate::proxy::FaultProxy::name_replica) that their proxies append
    /// to it.
    ///
    /// It says nothing of objects that were created before the log begins.
    pub fn deletes_without_a_read_of(&self, owners: &str) -> Vec<String> {
        let deletes = self.iter().filter(|request| request.verb == "delete" && request.is_done());
        let hasty = deletes.filter(|delete| {
            let created =
                self.iter().filter(|request| request.creates(delete) && request.received <= delete.received);
            let Some(created) = created.max_by_key(|request| request.received) else { return false };
            !self.iter().any(|read| {
                read.reads(owners, delete) && (created.received..=delete.received).contains(&read.received)
            })
        });
        hasty
            .map(|Request { resource, namespace, name, .. }| {
                format!(
                    "{resource} {namespace}/{name} was deleted without a read of {owners} since its creation"
                )
            })
            .collect()
    }
}

impl Request {
    fn is_done(&self) -> bool {
        (200..300).contains(&self.code) && self.subresource.is_empty()
    }

    /// Returns true if this request created the object that `other` is about.
    fn creates(&self, other: &Self) -> bool {
        self.code == 201
            && self.subresource.is_empty()
            && (&self.resource, &self.namespace, &self.name)
                == (&other.resource, &other.namespace, &other.name)
    }

    /// Returns true if this request reads an owner that could be that of `victim`, for the same replica.
    fn reads(&self, owners: &str, victim: &Self) -> bool {
        matches!(self.verb.as_str(), "get" | "list")
            && self.is_done()
            && self.resource == owners
            && (&self.user, &self.user_agent) == (&victim.user, &victim.user_agent)
            && (self.namespace.is_empty() || self.namespace == victim.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Requests;
    use super::*;

    /// Requests of one namespace, one word each: user (with the replica after an `@`), verb and object. A
    /// create is answered with 201.
    fn log(words: &str) -> Requests {
        let requests = words.split_whitespace().zip(1..).map(|(word, second)| {
            let [user, verb, object] = word.split(':').collect::<Vec<_>>()[..] else { panic!("{word}") };
            let (user, replica) = user.split_once('@').unwrap_or((user, ""));
            let (resource, name) = object.split_once('/').unwrap_or((object, ""));
            Request {
                user: user.to_owned(),
                user_agent: replica.to_owned(),
                verb: verb.to_owned(),
                resource: resource.to_owned(),
                subresource: String::new(),
                namespace: "n".to_owned(),
                name: name.to_owned(),
                code: if verb == "create" { 201 } else { 200 },
                uri: String::new(),
                received: Some(jiff::Timestamp::from_second(second).unwrap()),
            }
        });
        Requests(requests.collect())
    }

    fn hasty(words: &str) -> usize {
        log(words).deletes_without_a_read_of("shops").len()
    }

    #[test]
    fn seam_m2_a_delete_without_a_read_of_the_owner_since_the_creation_is_found() {
        assert_eq!(
            log("op:get:shops/a old:create:pods/p op:delete:pods/p").deletes_without_a_read_of("shops"),
            ["pods n/p was deleted without a read of shops since its creation"]
        );
        assert_eq!(hasty("op:create:pods/p other:get:shops/a op:delete:pods/p"), 1, "of another user");
        assert_eq!(hasty("op:create:pods/p op:get:pods/p op:delete:pods/p"), 1, "of another kind");
        assert_eq!(hasty("op:create:pods/p op:delete:pods/p op:get:shops/a"), 1, "too late");
    }

    #[test]
    fn seam_m2_a_read_by_the_former_leader_does_not_excuse_the_delete_of_the_standby() {
        let read_by =
            |replica: &str| hasty(&format!("op@1:create:pods/p op@{replica}:get:shops/a op@2:delete:pods/p"));
        assert_eq!(read_by("1"), 1);
        assert_eq!(read_by("2"), 0);
    }

    #[test]
    fn a_delete_after_a_read_of_the_owner_is_right() {
        assert_eq!(hasty("op:create:pods/p op:get:shops/a op:delete:pods/p"), 0);
        assert_eq!(hasty("op:create:pods/p op:list:shops op:delete:pods/p"), 0);
        assert_eq!(hasty("op:delete:pods/p"), 0, "nobody knows how old it was");
    }

    #[test]
    fn an_object_that_was_created_again_needs_another_read() {
        let once = "op:create:pods/p op:get:shops/a op:delete:pods/p";
        assert_eq!(hasty(&format!("{once} op:create:pods/p op:delete:pods/p")), 1);
        assert_eq!(hasty(&format!("{once} {once}")), 0);
    }
}
