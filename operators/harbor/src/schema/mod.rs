//! Where the schema of the database stands.
//!
//! Core migrates its database when it starts, one numbered step after the other, and keeps in a table which number it is at, and whether
//! a step was begun and not ended (`dirty`). A Core that finds it dirty does not start, and only a person can say what is to be done. So the
//! table is read before Core's pods give way to those of another version, and once more when these run, and at no other time: a Core that
//! stands still is the only one that its database hears of.
//!
//! Nothing is ever written. A database that cannot be reached from here, where the operator may not be let in, holds nothing up: the
//! status says why it was not read.
//!
//! [`Reading`] is what was found and how it is said, [`Target`] asks, [`SchemaCheck`] is the step in Core's plan.

mod check;
mod connect;
mod connector;
mod reading;
mod tls;

pub use check::{Readings, SchemaCheck};
pub use connect::Target;
pub use reading::{FIELD, Reading, Schema};
