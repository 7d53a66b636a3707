//! The catalogue of Harbor releases: the images, features and schema number of each version.
//!
//! It answers three questions, without I/O:
//! - What does a version consist of? [`Release`] has its images, features and schema number.
//! - May a version be installed, and which upgrades are allowed? [`admit_creation`] and [`admit_change`].
//! - Which of the requested components does a version no longer have? [`refuse_removed`].
//!
//! A new release of Harbor is one row in `releases.rs`; no other file contains version numbers.
//!
//! Existing Harbors are not checked: versions 2.2 to 2.4 run in clusters, have a [`Release`] and can be
//! upgraded, but cannot be created. The functions that refuse apply to creation and to a change of
//! `spec.version`.

mod admission;
mod component;
mod delegated;
mod feature;
mod ignored;
mod release;
mod releases;
mod removed;
mod version;

pub(crate) use admission::{Refusal, admit_change, admit_creation};
pub use component::Component;
pub(crate) use delegated::Delegated;
pub use feature::Feature;
pub(crate) use ignored::refuse_ignored;
pub use release::{Release, UnknownRelease};
pub(crate) use removed::{NotaryData, Wanted, refuse_removed};
pub use version::{InvalidVersion, Version};
