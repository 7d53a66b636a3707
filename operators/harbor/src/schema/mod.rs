//! The migration state of Harbor's database.
//!
//! When Core starts, it applies numbered migrations and stores the number of the last one in a table,
//! together with a flag that the migration has not finished (`dirty`). Core does not start with a dirty
//! schema, and a person has to decide what to do. The operator therefore reads the table before Core's pods
//! are replaced by those of another version, and again when the new pods run. At all other times the operator
//! does not connect to the database.
//!
//! The operator never writes to the database. A database that the operator cannot reach blocks nothing; the
//! status says why it was not read.
//!
//! [`Reading`] is the result and its representation in the status, [`Target`] reads it, [`SchemaCheck`] is
//! the step in Core's plan.

mod check;
mod connect;
mod connector;
mod reading;
mod tls;

pub(crate) use check::{Readings, SchemaCheck};
pub use connect::Target;
pub(crate) use reading::FIELD;
pub use reading::{Reading, Schema};
