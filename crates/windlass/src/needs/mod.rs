//! Needs: objects that a plan asks for and does not own.
//!
//! An object is watched by namespace and name, one watch each however many owners ask for it, and only as
//! long as one of them does: an operator never reads all Secrets of a cluster. An object that another
//! controller of the same operator creates is read from [one watch of everything that it creates](made), and
//! objects that are found by a label from [one watch per kind and label](labelled).
//!
//! This module does not know plans. A plan asks through [`Answers`]: the cluster answers through a [`Pass`],
//! previews through [`fixed`] answers.

mod answers;
mod ask;
pub(crate) mod fixed;
mod form;
pub(crate) mod labelled;
pub(crate) mod made;
mod pass;
mod registry;
mod source;
mod sources;
mod wake;

pub(crate) use self::answers::Answers;
pub(crate) use self::ask::{Answer, Ask};
pub(crate) use self::form::Form;
pub(crate) use self::pass::Pass;
pub(crate) use self::registry::{PassEnd, Registry};
pub(crate) use self::wake::Wake;
