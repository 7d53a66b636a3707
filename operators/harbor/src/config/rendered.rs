//! What rendering a component gives.

use std::collections::BTreeMap;

use super::confidential::Confidential;
use super::env::{Env, SecretKey};

/// The configuration of one component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The data of its ConfigMap, by key. Holds no secret.
    pub config: BTreeMap<String, String>,
    /// The data of the Secret that was named when it was rendered, by key.
    pub secret: BTreeMap<String, Confidential>,
    /// The environment of its container, in the order of names.
    pub env: Vec<Env>,
}

/// The Secret of a component while it is filled: each value put in gives the reference to it.
#[derive(Debug)]
pub(crate) struct Vault<'a> {
    name: &'a str,
    data: BTreeMap<String, Confidential>,
}

impl<'a> Vault<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self { name, data: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, key: &str, value: Confidential) -> SecretKey {
        self.data.insert(key.to_owned(), value);
        SecretKey::new(self.name, key)
    }

    pub(crate) fn finish(self) -> BTreeMap<String, Confidential> {
        self.data
    }
}
