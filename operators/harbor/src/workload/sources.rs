//! The values that a component takes from Secrets, claims and other objects.
//!
//! A component asks for what it takes while it is drawn. Where something is missing, it gets a placeholder, so that everything
//! that is missing is found in one go; nothing that was drawn with a placeholder is ever applied.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use serde::de::DeserializeOwned;
use windlass::{Kind, Needs, Planned, Values};

use crate::api::embedded::{Embedded, VolumeSource};
use crate::config::database::check_word;
use crate::config::{Confidential, SecretKey};

/// The key of a password of PostgreSQL, and those that others write.
const DATABASE_KEYS: [&str; 3] = ["postgres-password", "postgresql-password", "password"];

/// The source of a component's values.
pub struct Sources<'a> {
    needs: &'a Needs<'a>,
    read_by_pods: BTreeMap<String, Planned>,
    missing: Vec<String>,
    advice: Vec<String>,
}

impl<'a> Sources<'a> {
    /// Takes values from what the plan asks for.
    pub fn new(needs: &'a Needs<'a>) -> Self {
        Self { needs, read_by_pods: BTreeMap::new(), missing: Vec::new(), advice: Vec::new() }
    }

    /// A value that pods read from the Secret itself. `field` is where the Secret is named.
    pub fn key(&mut self, field: &str, secret: &str, key: &str) -> SecretKey {
        self.one_of(field, secret, &[key])
    }

    /// The same, under the first of these keys that there is.
    pub fn one_of(&mut self, field: &str, secret: &str, keys: &[&str]) -> SecretKey {
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

    /// What there is under a key, if it is known and text.
    pub fn text(&mut self, key: &SecretKey) -> Option<Confidential> {
        self.look(&key.name)?.text(&key.key).map(Confidential::new)
    }

    /// The password of PostgreSQL, which Harbor's components read from the Secret itself and put into a list of words.
    pub fn database_password(&mut self, field: &str, secret: &str) -> SecretKey {
        let found = self.one_of(field, secret, &DATABASE_KEYS);
        self.advise_on_key(field, secret, &found.key);
        let text = self.look(secret).and_then(|values| values.text(&found.key));
        if let Some(Err(unusable)) = text.map(|text| check_word(&text)) {
            self.missing
                .push(format!("{field}: the password in Secret {secret}, key {}: {unusable}", found.key));
        }
        found
    }

    /// The password of PostgreSQL, for a component that reads it from a URL that we write.
    pub fn database_password_value(&mut self, field: &str, secret: &str) -> Confidential {
        let known = self
            .look(secret)
            .and_then(|values| DATABASE_KEYS.iter().copied().find(|key| values.bytes(key).is_some()));
        let key = known.unwrap_or(DATABASE_KEYS[0]);
        self.advise_on_key(field, secret, key);
        self.value(field, secret, key)
    }

    /// Others write the password of PostgreSQL under other keys: they are read, and it is said which one is meant.
    fn advise_on_key(&mut self, field: &str, secret: &str, found: &str) {
        let [meant, ..] = DATABASE_KEYS;
        let said = format!(
            "{field}: Secret {secret} has the password under {found}: put it under {meant}, which comes first and is the only one that is \
             sure to be read"
        );
        if found != meant && !self.advice.contains(&said) {
            self.advice.push(said);
        }
    }

    /// What should be otherwise, though it works.
    pub(super) fn advice(&mut self) -> Vec<String> {
        std::mem::take(&mut self.advice)
    }

    /// A value that we read, and write into a Secret of our own.
    pub fn value(&mut self, field: &str, secret: &str, key: &str) -> Confidential {
        let Some(values) = self.look(secret) else { return Confidential::new("") };
        let Some(text) = values.text(key) else {
            self.lacks(field, secret, key);
            return Confidential::new("");
        };
        Confidential::new(text)
    }

    /// Every key and value, which we write into a Secret of our own.
    pub fn options(&mut self, field: &str, secret: &str) -> BTreeMap<String, Confidential> {
        let keys = self.look(secret).map(|values| values.keys()).unwrap_or_default();
        keys.into_iter().map(|key| (key.clone(), self.value(field, secret, &key))).collect()
    }

    /// Files that pods read from the Secret itself: it has to have these keys.
    pub fn files(&mut self, field: &str, secret: &str, keys: &[&str]) {
        for key in keys {
            self.key(field, secret, key);
        }
        if keys.is_empty() {
            self.look(secret);
            self.read_by_pods(secret);
        }
    }

    /// Another object, as it is. Its content does not replace pods: what of it they read, they are drawn with.
    pub fn object<K: Kind + DeserializeOwned>(&mut self, name: &str) -> Option<K> {
        let found = self.needs.object::<K>(name).get();
        if found.is_none() && !self.needs.is_assumed() {
            self.missing.push(format!("{} {name} is not there", K::kind(&())));
        }
        found
    }

    /// Whether any of these volumes is a claim that pods of one node only can use at the same time.
    pub fn exclusive<'v>(&mut self, volumes: impl IntoIterator<Item = &'v Embedded<VolumeSource>>) -> bool {
        let mut exclusive = false;
        for name in volumes.into_iter().filter_map(Embedded::claim_name) {
            let claim = self.object::<PersistentVolumeClaim>(name);
            let modes =
                claim.and_then(|claim| claim.spec).and_then(|spec| spec.access_modes).unwrap_or_default();
            exclusive |= !modes.iter().any(|mode| mode == "ReadWriteMany" || mode == "ReadOnlyMany");
        }
        exclusive
    }

    /// What pods come after, so that they are replaced when it changes; or what is missing.
    pub(super) fn finish(self) -> Result<Vec<Planned>, String> {
        if !self.missing.is_empty() {
            return Err(self.missing.join("; "));
        }
        Ok(self.read_by_pods.into_values().collect())
    }

    /// Pods read this Secret themselves, so they are replaced when it changes.
    fn read_by_pods(&mut self, secret: &str) {
        let node = self.needs.read::<Secret>(secret).node().clone();
        self.read_by_pods.insert(secret.to_owned(), node);
    }

    /// The values of a Secret, if it exists. If it does not, that is noted. A preview has none.
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
        let said = format!(
            "{field}: Secret {secret} has no text under the key {key}: add it, or name another Secret"
        );
        if !self.missing.contains(&said) {
            self.missing.push(said);
        }
    }
}
