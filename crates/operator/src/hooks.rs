//! The webhooks of an operator, as its manifests register them at the API server.

use kube::Resource;
use windlass_runtime::webhook::{mutate_path, validate_path};

/// The declaration of a webhook. Created by [`Setup::defaulter`](crate::Setup::defaulter) and
/// [`Setup::validator`](crate::Setup::validator).
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
    /// True if the webhook is also called for updates that leave the spec unchanged.
    pub(crate) any_update: bool,
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
            any_update: false,
            group,
            plural,
        }
    }

    /// Sets the name in the configuration, instead of `<verb>.<plural>.<group>`: at least three words with
    /// dots.
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        self.name = name.into();
        self
    }

    /// Calls the webhook for deletions too.
    pub fn on_delete(&mut self) -> &mut Self {
        self.operations.push("DELETE");
        self
    }

    /// Calls the webhook also for updates that leave the spec unchanged: of labels, annotations and
    /// finalizers.
    ///
    /// Such updates pass by default, so that an object can be labelled, and a finalizer removed, while the
    /// webhook cannot be reached.
    pub fn on_any_update(&mut self) -> &mut Self {
        self.any_update = true;
        self
    }

    /// Lets requests pass while the webhook cannot be reached (`failurePolicy: Ignore`). By default they
    /// fail, so that no unchecked object is stored.
    pub fn fails_open(&mut self) -> &mut Self {
        self.fails_open = true;
        self
    }
}
