//! The parameter of `draw` that asks for objects that the plan does not own.
//!
//! An object that is asked for and not known yet is watched from then on, and the plan is drawn again once it
//! has been read. The methods that ask are in `nodes::input`, since each puts a node into the plan.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::draft::{Draft, Index};
use super::node::Node;
use super::{Drafts, Kinds, Plan, Planned};
use crate::error::PlanError;
use crate::live::Known;
use crate::live::kind::id;
use crate::needs::labelled::{AnyObjects, ListAsk};
use crate::needs::{Answer, Answers, Ask, Form};

/// Asks for objects that a plan needs and does not own: Secrets of users, objects of other operators, what
/// another controller of the same operator creates.
///
/// An answer is *there*, *absent*, *not ready* or *unknown*. A plan that was answered "unknown", or that
/// misses something it requires, is applied as far as it goes, but it is incomplete: it prunes nothing and is
/// never ready. When the object arrives, the plan is drawn again. Asking twice for the same object costs
/// nothing.
///
/// ```
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
/// # use windlass::{Needs, Plan};
/// fn draw(needs: &mut Needs<'_>, plan: &mut Plan, deployment: Deployment) {
///     let password = needs.require::<Secret>("password"); // must exist; pods roll when its content changes
///     plan.add(deployment).after([password]);
/// }
/// ```
pub struct Needs<'a> {
    answers: &'a dyn Answers,
    kinds: &'a Kinds,
    drafts: Drafts,
    namespace: Option<String>,
    /// The nodes of the objects that have been asked for, by id.
    asked: Mutex<HashMap<String, Index>>,
}

impl<'a> Needs<'a> {
    pub(super) fn new(answers: &'a dyn Answers, kinds: &'a Kinds, plan: &Plan) -> Self {
        Self {
            answers,
            kinds,
            drafts: Arc::clone(plan.drafts()),
            namespace: plan.namespace().map(str::to_owned),
            asked: Mutex::default(),
        }
    }

    /// Returns whether this is a [preview](crate::preview): every object is assumed to exist, and none has
    /// values.
    pub fn is_assumed(&self) -> bool {
        self.answers.is_assumed()
    }

    /// Returns the namespace of the owner.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the key of an object in the owner's namespace, or in another one.
    pub(crate) fn key(&self, resource: &ResourceType, namespace: Option<&str>, name: &str) -> ObjectKey {
        let namespace = namespace.or(self.namespace.as_deref()).filter(|_| resource.namespaced);
        ObjectKey::new(namespace.map(Str::new), name)
    }

    /// Asks for an object.
    pub(crate) fn ask(&self, resource: ResourceType, key: ObjectKey, form: Form) -> Answer {
        if let Err(why) = self.is_declared(&resource, &key) {
            return Answer::Unknown(why);
        }
        self.answers.answer(&Ask::new(resource, key, form))
    }

    /// Asks for all objects with a label.
    pub(crate) fn ask_list(&self, ask: &ListAsk) -> Known<AnyObjects> {
        if !self.kinds.labelled.iter().any(|kind| kind.answers(ask)) {
            let (kind, label) = (&ask.resource.kind, ask.label);
            let message = format!(
                "the list of {} is not declared: add `kinds.lists::<{kind}, _>({label:?})`, with the shape that is asked for, to \
                 Controls::kinds",
                ask.title()
            );
            self.drafts.lock().errors.push(PlanError::new(message.clone()));
            return Known::Unknown(message);
        }
        self.answers.list(ask)
    }

    /// Returns the node of an object that was asked for: created at the first call, the same one from then
    /// on.
    pub(crate) fn node(&self, id: String, node: impl Node) -> Planned {
        let drafts = &self.drafts;
        let index = *self.asked.lock().entry(id.clone()).or_insert_with(|| {
            let mut drafts = drafts.lock();
            drafts.needs.push(Draft::new(id, Box::new(node)));
            Index::Need(drafts.needs.len() - 1)
        });
        Planned::new(Arc::clone(&self.drafts), index)
    }

    fn is_declared(&self, resource: &ResourceType, key: &ObjectKey) -> Result<(), String> {
        if self.kinds.required.contains(resource) {
            return Ok(());
        }
        let kind = &resource.kind;
        let id = id(resource, key, self.namespace());
        let message =
            format!("the kind of {id} is not declared: add `kinds.requires::<{kind}>()` to Controls::kinds");
        self.drafts.lock().errors.push(PlanError::new(message.clone()));
        Err(message)
    }
}
