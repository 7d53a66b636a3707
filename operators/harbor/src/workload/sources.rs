//! Values that a component reads from Secrets, claims and other objects.
//!
//! A component requests them while it is rendered. A missing value is replaced by a placeholder, so that one
//! pass finds everything that is missing; objects that were rendered with a placeholder are never applied.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use serde::de::DeserializeOwned;
use windlass::{Kind, Needs, Planned, Values};

use crate::api::embedded::{Embedded, VolumeSource};
use crate::config::database::check_word;
use crate::config::{Confidential, SecretKey};

/// Keys of a PostgreSQL password: ours first, then those that other charts and operators write.
pub(crate) const DATABASE_KEYS: [&str; 3] = ["postgres-password", "postgresql-password", "password"];

/// The source of a component's values.
pub struct Sources<'a> {
    needs: &'a Needs<'a>,
    read_by_pods: BTreeMap<String, Planned>,
    missing: Vec<String>,
    advice: Vec<String>,
}

impl<'a> Sources<'a> {
    /// Returns a source that reads from the needs of the plan.
    pub(crate) fn new(needs: &'a Needs<'a>) -> Self {
        Self { needs, read_by_pods: BTreeMap::new(), missing: Vec::new(), advice: Vec::new() }
    }

    /// Returns a reference to a key that pods read from the Secret. `field` is the path of the field that
    /// names the Secret.
    pub(crate) fn key(&mut self, field: &str, secret: &str, key: &str) -> SecretKey {
        self.one_of(field, secret, &[key])
    }

    /// Returns a reference to the first of these keys that the Secret has.
    pub(crate) fn one_of(&mut self, field: &str, secret: &str, keys: &[&str]) -> SecretKey {
        let first = keys.first().copied().unwrap_or_default();
        let found = match self.look(secret) {
            Some(values) => keys.iter().find(|key| values.bytes(key).is_some()).copied(),
            None => Some(first),
        };
        if found.is_none() {
            self.lacks(field, secret, first);
        }
        self.read_by_pods(secret);
        SecretKey::new(secret, found.unwrap_or(first))
    }

    /// Returns the value of a key, if it is known and text.
    pub(crate) fn text(&mut self, key: &SecretKey) -> Option<Confidential> {
        self.look(&key.name)?.text(&key.key).map(Confidential::new)
    }

    /// Returns a reference to a PostgreSQL password that Harbor's components read from the Secret and put
    /// into a connection string. Reports passwords that such a string cannot contain.
    pub(crate) fn database_password(&mut self, field: &str, secret: &str) -> SecretKey {
        let found = self.one_of(field, secret, &DATABASE_KEYS);
        self.advise_on_key(field, secret, &found.key);
        let text = self.look(secret).and_then(|values| values.text(&found.key));
        self.missing.extend(text.and_then(|text| unusable_password(field, secret, &found.key, &text)));
        found
    }

    /// Returns the PostgreSQL password for a component that reads it from a URL in a Secret of ours.
    pub(crate) fn database_password_value(&mut self, field: &str, secret: &str) -> Confidential {
        let known = self
            .look(secret)
            .and_then(|values| DATABASE_KEYS.iter().copied().find(|key| values.bytes(key).is_some()));
        let key = known.unwrap_or(DATABASE_KEYS[0]);
        self.advise_on_key(field, secret, key);
        self.value(field, secret, key)
    }

    /// Adds advice if the password is under a key of another chart or operator.
    fn advise_on_key(&mut self, field: &str, secret: &str, found: &str) {
        let [meant, ..] = DATABASE_KEYS;
        let message = format!(
            "{field}: Secret {secret} has the password under the key {found}: move it to the key {meant}, the only one that every release reads"
        );
        if found != meant {
            self.advise(message);
        }
    }

    /// Adds advice: a setting that works but should be changed.
    pub(crate) fn advise(&mut self, message: String) {
        if !self.advice.contains(&message) {
            self.advice.push(message);
        }
    }

    /// Returns the advice: settings that work but should be changed.
    pub(super) fn advice(&mut self) -> Vec<String> {
        std::mem::take(&mut self.advice)
    }

    /// Returns a value that is copied into a Secret of ours.
    pub(crate) fn value(&mut self, field: &str, secret: &str, key: &str) -> Confidential {
        let Some(values) = self.look(secret) else { return Confidential::new("") };
        let Some(text) = values.text(key) else {
            self.lacks(field, secret, key);
            return Confidential::new("");
        };
        Confidential::new(text)
    }

    /// Returns all keys and values of a Secret, which are copied into a Secret of ours.
    pub(crate) fn options(&mut self, field: &str, secret: &str) -> BTreeMap<String, Confidential> {
        let keys = self.look(secret).map(|values| values.keys()).unwrap_or_default();
        keys.into_iter().map(|key| (key.clone(), self.value(field, secret, &key))).collect()
    }

    /// Registers files that pods read from the Secret; the Secret must have these keys.
    pub(crate) fn files(&mut self, field: &str, secret: &str, keys: &[&str]) {
        for key in keys {
            self.key(field, secret, key);
        }
        if keys.is_empty() {
            self.look(secret);
            self.read_by_pods(secret);
        }
    }

    /// Returns another object as it is. A change of its content does not replace pods unless it changes the
    /// rendered objects.
    pub(crate) fn object<K: Kind + DeserializeOwned>(&mut self, name: &str) -> Option<K> {
        let found = self.needs.object::<K>(name).get();
        if found.is_none() && !self.needs.is_assumed() {
            self.missing.push(format!("{} {name} is not there", K::kind(&())));
        }
        found
    }

    /// Returns true if one of these volumes is a claim that the pods of one node only can mount at a time.
    pub(crate) fn exclusive<'v>(
        &mut self,
        volumes: impl IntoIterator<Item = &'v Embedded<VolumeSource>>,
    ) -> bool {
        let mut exclusive = false;
        for name in volumes.into_iter().filter_map(Embedded::claim_name) {
            let claim = self.object::<PersistentVolumeClaim>(name);
            let modes =
                claim.and_then(|claim| claim.spec).and_then(|spec| spec.access_modes).unwrap_or_default();
            exclusive |= !modes.iter().any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany");
        }
        exclusive
    }

    /// Returns the nodes that the pods come after, so that they are replaced when the content changes; or an
    /// error that names what is missing.
    pub(super) fn finish(self) -> Result<Vec<Planned>, String> {
        if !self.missing.is_empty() {
            return Err(self.missing.join("; "));
        }
        Ok(self.read_by_pods.into_values().collect())
    }

    /// Registers a Secret that pods read, so that they are replaced when it changes.
    fn read_by_pods(&mut self, secret: &str) {
        let node = self.needs.read::<Secret>(secret).node().clone();
        self.read_by_pods.insert(secret.to_owned(), node);
    }

    /// Returns the values of a Secret; registers it as missing if it does not exist. A preview has no values.
    fn look(&mut self, secret: &str) -> Option<Values> {
        let values = self.needs.read::<Secret>(secret);
        if self.needs.is_assumed() || values.is_there() {
            return Some(values).filter(Values::is_there);
        }
        let message = format!("Secret {secret} is not there");
        if !self.missing.contains(&message) {
            self.missing.push(message);
        }
        None
    }

    fn lacks(&mut self, field: &str, secret: &str, key: &str) {
        let message = format!(
            "{field}: Secret {secret} has no text under the key {key}: add it, or name another Secret"
        );
        if !self.missing.contains(&message) {
            self.missing.push(message);
        }
    }
}

/// Returns a message if Harbor's components cannot put a PostgreSQL password into their connection strings.
pub(crate) fn unusable_password(field: &str, secret: &str, key: &str, password: &str) -> Option<String> {
    let unusable = check_word(password).err()?;
    Some(format!("{field}: the password in Secret {secret}, key {key}: {unusable}"))
}
