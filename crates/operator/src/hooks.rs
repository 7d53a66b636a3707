//! Which webhooks an operator has, as its manifests tell the API server.

use kube::Resource;
use windlass_runtime::webhook::{mutate_path, validate_path};

/// A webhook, declared. Made by [`Setup::defaulter`](crate::Setup::defaulter) and [`Setup::validator`](crate::Setup::validator).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub(crate) sort: Sort,
    pub(crate) path: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) operations: Vec<&'static str>,
    pub(crate) fails_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Mutating,
    Validating,
}

impl Hook {
    pub(crate) fn mutating<K: Resource<DynamicType = ()>>() -> Self {
        Self::new::<K>(Sort::Mutating, mutate_path::<K>(), "default")
    }

    pub(crate) fn validating<K: Resource<DynamicType = ()>>() -> Self {
        Self::new::<K>(Sort::Validating, validate_path::<K>(), "validate")
    }

    fn new<K: Resource<DynamicType = ()>>(sort: Sort, path: String, verb: &str) -> Self {
        let (group, plural) = (K::group(&()).into_owned(), K::plural(&()).into_owned());
        let domain = if group.is_empty() { "core.windlass.dev" } else { &group };
        Self {
            sort,
            path,
            name: format!("{verb}.{plural}.{domain}"),
            version: K::version(&()).into_owned(),
            operations: vec!["CREATE", "UPDATE"],
            fails_open: false,
            group,
            plural,
        }
    }

    /// Its name in the configuration, other than `<verb>.<plural>.<group>`: at least three words with dots.
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        self.name = name.into();
        self
    }

    /// Asked about deletions too.
    pub fn on_delete(&mut self) -> &mut Self {
        self.operations.push("DELETE");
        self
    }

    /// Where it cannot be reached, requests pass. Otherwise they fail: what was never checked is never stored.
    pub fn fails_open(&mut self) -> &mut Self {
        self.fails_open = true;
        self
    }
}
