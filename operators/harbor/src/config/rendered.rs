//! The result of rendering a component.

use std::collections::BTreeMap;

use super::confidential::Confidential;
use super::env::{Env, SecretKey};

/// The configuration of one component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The data of its ConfigMap by key, without secrets.
    pub config: BTreeMap<String, String>,
    /// The data by key of the Secret whose name was passed to the renderer.
    pub secret: BTreeMap<String, Confidential>,
    /// The environment of its container, sorted by name.
    pub env: Vec<Env>,
}

/// A Secret while it is filled: each value that is added returns a reference to it.
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
