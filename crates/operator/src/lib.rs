//! Turns the declaration of an operator into a program with a command line, a process and manifests.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_operator::{BoxError, Operator, Setup};
//! use windlass_runtime::access::Access;
//! use windlass_runtime::cache::MetadataOnly;
//! use windlass_runtime::controller::{Controller, Requeue};
//! use windlass_runtime::key::ObjectKey;
//!
//! fn main() -> ExitCode {
//!     windlass_operator::main(&operator())
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("census").about("Says which ConfigMaps change").part(census)
//! }
//!
//! fn census(setup: &mut Setup<'_>) -> Result<(), BoxError> {
//!     let maps = setup.cache().reader::<MetadataOnly<ConfigMap>>(&setup.scope());
//!     let controller = Controller::for_(&maps).name("census").workers(setup.workers()).build(|key: ObjectKey| async move {
//!         tracing::info!("{key} changed");
//!         Ok(Requeue::OnChange)
//!     })?;
//!     setup.needs(Access::none()); // it writes nothing; that it watches ConfigMaps is known
//!     setup.controller(controller)?;
//!     Ok(())
//! }
//! ```
//!
//! | command | what it does |
//! | --- | --- |
//! | `census`, `census run` | runs, with the flags that users of controller-runtime know (`--help` lists them) |
//! | `census manifests` | writes the manifests that install it, with exactly the rights that it needs |
//! | `census graph shop.yaml` | shows the plan that a [blueprint](Operator::blueprint) draws for the objects of a manifest |
//! | `census reference` | writes a page of every field of its kinds |
//! | `census uninstall` | removes an installation from a cluster, and keeps users' objects and their data |
//! | `census manifests --check deploy` | fails if the manifests in this directory are out of date, for CI |
//!
//! It promises: the process and the manifests come from the same declarations, so they cannot disagree;
//! manifests are generated without a cluster, with the same bytes every time; a process can be
//! [assembled](Operator::assemble) in a test as in production.
//!
//! It does not build images, and does not apply manifests (`kubectl apply --server-side -k deploy` does).

mod args;
mod blueprint;
mod failure;
mod graph;
mod hooks;
pub mod manifests;
mod metrics_names;
mod operator;
mod own;
mod process;
mod program;
mod reference;
mod settings;
mod setup;
mod uninstall;
mod webhook_names;
mod wording;
pub mod yaml;

pub use windlass_runtime::manager::BoxError;

pub use self::hooks::Hook;
pub use self::operator::Operator;
pub use self::own::{Setting, SettingValues};
pub use self::process::{AssembleError, Process};
pub use self::program::{main, main_from, main_with};
pub use self::reference::{UnknownKind, reference};
pub use self::settings::{Lease, Settings};
pub use self::setup::Setup;
pub use self::wording::{UnclearTexts, check_help, check_wording};
