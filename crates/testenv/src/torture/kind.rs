//! The kinds whose objects belong to the state of a scenario.

use std::fmt;
use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource};

type Test = Arc<dyn Fn(&DynamicObject) -> bool + Send + Sync>;

/// A kind of namespaced objects that belongs to the state of a scenario.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::Secret;
/// use windlass_testenv::torture::Kind;
///
/// let deployments = Kind::of::<Deployment>();
/// let passwords = Kind::of::<Secret>().created_once();
/// assert_eq!(passwords.to_string(), "Secret, created once");
/// # let _ = deployments;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Kind {
    pub(super) resource: ApiResource,
    pub(super) status: bool,
    pub(super) selector: Option<String>,
    once: Option<Test>,
    available: Option<Test>,
}

impl Kind {
    /// The kind of a type.
    pub fn of<K>() -> Self
    where
        K: Resource,
        K::DynamicType: Default,
    {
        ApiResource::erase::<K>(&K::DynamicType::default()).into()
    }

    /// Declares that objects of this kind are created once and never changed: their content when they are
    /// first seen is random or comes from elsewhere, and must still be the same at the end of the repetition.
    /// It is not compared with other runs.
    pub fn created_once(self) -> Self {
        self.created_once_where(|_| true)
    }

    /// Declares [`created_once`](Self::created_once) for the objects for which `applies` returns true.
    pub fn created_once_where(
        self,
        applies: impl Fn(&DynamicObject) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { once: Some(Arc::new(applies)), ..self }
    }

    /// Declares that an object for which `is_available` has returned true stays so, through every
    /// disturbance, until a [disruptive](super::Torture::disruptive) step begins, and is not deleted before
    /// either. A change that is not meant to interrupt a service must not do so, even if a
    /// process is killed meanwhile.
    pub fn stays_available_where(
        self,
        is_available: impl Fn(&DynamicObject) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { available: Some(Arc::new(is_available)), ..self }
    }

    /// The status is compared as well (without times and observed generations). Without this it is not, since
    /// that of most built-in kinds tells how things came about.
    pub fn with_status(self) -> Self {
        Self { status: true, ..self }
    }

    /// Selects only objects with these labels, written as for `kubectl -l`.
    pub fn labelled(self, selector: impl Into<String>) -> Self {
        Self { selector: Some(selector.into()), ..self }
    }

    pub(super) fn is_once(&self, object: &DynamicObject) -> bool {
        self.once.as_ref().is_some_and(|applies| applies(object))
    }

    /// Returns whether the object is available; `None` if nothing is declared about that.
    pub(super) fn is_available(&self, object: &DynamicObject) -> Option<bool> {
        self.available.as_ref().map(|is_available| is_available(object))
    }

    pub(super) fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource)
    }

    pub(super) fn name(&self) -> &str {
        &self.resource.kind
    }
}

/// A kind that is not known at compile time.
impl From<ApiResource> for Kind {
    fn from(resource: ApiResource) -> Self {
        Self { resource, status: false, selector: None, once: None, available: None }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(selector) = &self.selector {
            write!(f, " with {selector}")?;
        }
        if self.once.is_some() {
            f.write_str(", created once")?;
        }
        if self.status {
            f.write_str(", with its status")?;
        }
        if self.available.is_some() {
            f.write_str(", stays available")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}
