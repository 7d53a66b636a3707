//! The election record of a Lease, as client-go writes it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Value, json};

/// The five fields of the election. Times are for people to read: no decision depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// The identity of the holder; empty if there is none.
    pub(super) holder: String,
    /// The time that others wait without a renewal.
    pub(super) duration: Option<Duration>,
    pub(super) acquired: Option<Timestamp>,
    pub(super) renewed: Option<Timestamp>,
    /// The number of changes of the holder.
    pub(super) transitions: i32,
}

/// A Lease as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) record: Record,
    /// The resource version: a write that names it succeeds only if the Lease did not change since.
    pub(super) version: String,
}

impl From<&LeaseSpec> for Record {
    fn from(spec: &LeaseSpec) -> Self {
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration: seconds.map(Duration::from_secs),
            acquired: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

impl From<&Lease> for Found {
    fn from(lease: &Lease) -> Self {
        Self {
            record: lease.spec.as_ref().map(Record::from).unwrap_or_default(),
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

impl Record {
    /// Returns the `spec` for a patch: other fields of the Lease stay as they are.
    pub(super) fn to_spec(&self) -> Value {
        let seconds = self.duration.map(|duration| duration.as_secs());
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": self.acquired.map(MicroTime),
            "renewTime": self.renewed.map(MicroTime),
            "leaseTransitions": self.transitions,
        })
    }

    /// Returns the renewal time to write: `wall`, but always later than the last one. Others consider a
    /// leader expired if its record does not change, even where our clock stands still or was set back.
    pub(super) fn next_renewal(&self, wall: Timestamp) -> Timestamp {
        let wall = to_micros(wall);
        match self.renewed.map(|last| last.checked_add(SignedDuration::from_micros(1))) {
            Some(Ok(after)) => wall.max(after),
            _ => wall,
        }
    }
}

/// Truncates to the precision of a Lease.
pub(super) fn to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_record_is_written_as_by_client_go_and_read_back() {
        let record = Record {
            holder: "a_1".into(),
            duration: Some(Duration::from_secs(15)),
            acquired: Some(at("2026-11-15T10:00:00Z")),
            renewed: Some(at("2026-11-15T10:00:02.5Z")),
            transitions: 3,
        };
        let spec = record.to_spec();
        assert_eq!(
            spec,
            json!({
                "holderIdentity": "a_1",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-11-15T10:00:00.000000Z",
                "renewTime": "2026-11-15T10:00:02.500000Z",
                "leaseTransitions": 3,
            })
        );
        assert_eq!(Record::from(&serde_json::from_value::<LeaseSpec>(spec).unwrap()), record);
    }

    #[test]
    fn an_empty_lease_has_no_holder() {
        let found = Found::from(&Lease::default());
        assert_eq!(found, Found { record: Record::default(), version: String::new() });
    }

    #[test]
    fn a_renewal_is_always_later_than_the_last_one() {
        let mut record = Record::default();
        let wall = at("2026-11-15T10:00:00.123456789Z");
        assert_eq!(record.next_renewal(wall), at("2026-11-15T10:00:00.123456Z"));
        record.renewed = Some(at("2026-11-15T11:00:00Z"));
        assert_eq!(record.next_renewal(wall), at("2026-11-15T11:00:00.000001Z"));
    }
}
