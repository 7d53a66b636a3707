//! What each release of Harbor is made of.
//!
//! Three questions are answered here, all of them without any I/O:
//! - what does a version consist of: [`Release`] (images, features, schema number);
//! - may this version be installed, and may that one follow it: [`admit_creation`] and [`admit_change`];
//! - which of the components asked for no longer exist: [`refuse_removed`].
//!
//! A new release of Harbor is one row in `releases.rs`; nothing else knows version numbers.
//!
//! An existing Harbor is never judged by this module: versions 2.2 to 2.4 run in clusters, have a [`Release`] and can be upgraded, but not
//! created. The functions that refuse are for creation and for a change of `spec.version`.

mod admission;
mod component;
mod delegated;
mod feature;
mod release;
mod releases;
mod removed;
mod version;

pub use admission::{Refusal, Warning, admit_change, admit_creation, warnings};
pub use component::Component;
pub use delegated::Delegated;
pub use feature::Feature;
pub use release::{Release, UnknownRelease};
pub use releases::DatabaseImage;
pub use removed::{NotaryData, Wanted, refuse_removed};
pub use version::{InvalidVersion, Version};
