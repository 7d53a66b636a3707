//! Objects that are made anew before they are too old: certificates.
//!
//! Their makers run when something is due and at no other time, at the rim, where there are a clock and random numbers; what they
//! decide is a pure function of what they are [given](Making).

use jiff::Timestamp;
use kube::ResourceExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_runtime::json::typed;

use crate::desired::Kind;
use crate::secrecy::Random;

/// What the maker of a [renewed](crate::Plan::renew) object is given.
pub struct Making<'a> {
    pub(crate) now: Timestamp,
    pub(crate) random: &'a mut Random,
    pub(crate) present: Option<&'a Value>,
    pub(crate) before: &'a [Value],
}

impl<'a> Making<'a> {
    /// For tests of makers: at this time, with this object there, and these that it comes after.
    pub fn at(
        now: Timestamp,
        random: &'a mut Random,
        present: Option<&'a Value>,
        before: &'a [Value],
    ) -> Self {
        Self { now, random, present, before }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Random numbers.
    pub fn random(&mut self) -> &mut Random {
        self.random
    }

    /// The object as it is; `None` if there is none, or none of this type.
    pub fn present<K: DeserializeOwned>(&self) -> Option<K> {
        typed(self.present?).ok()
    }

    /// A renewed object that this one comes after, as it is.
    pub fn before<K: Kind + DeserializeOwned>(&self, name: &str) -> Option<K> {
        let all = self.before.iter().filter(|object| object["kind"] == *K::kind(&()));
        let typed = all.filter_map(|object| typed::<K>(object).ok());
        typed.into_iter().find(|object| object.name_any() == name)
    }
}

impl std::fmt::Debug for Making<'_> {
    // What is there may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Making").field("now", &self.now).finish_non_exhaustive()
    }
}

/// An object that was made, and until when it is good.
pub struct Made<K> {
    /// The object. Its `data`, if it has any, is watched for changes by others.
    pub object: K,
    /// When the maker is to be asked again. A moment that has passed means at once, for ever: say when.
    pub due: Timestamp,
}

impl<K> std::fmt::Debug for Made<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").field("due", &self.due).finish_non_exhaustive()
    }
}
