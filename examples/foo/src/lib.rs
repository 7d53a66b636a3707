//! The sample controller: every Foo has a Deployment, and its status says how many of its replicas are
//! available.
//!
//! Read [`api`] first (the kind), then [`controller`] (the reconcile function); [`deployment`] has the fields
//! of the Deployment that are written and compared. This file puts them together.

#![allow(clippy::disallowed_names)] // here, foo is a name: that of a kind

pub mod api;
pub mod controller;
pub mod deployment;

use windlass_operator::Operator;

use crate::api::Foo;

/// The operator: one kind, one controller.
pub fn operator() -> Operator {
    Operator::new("sample-controller")
        .about("Gives every Foo a Deployment, and keeps it up to date")
        .version(env!("CARGO_PKG_VERSION"))
        .crd::<Foo>()
        .part(controller::set_up)
}

#[cfg(test)]
mod tests {
    #[test]
    fn descriptions_and_flags_can_be_understood_alone() {
        windlass_operator::check_wording(&super::operator()).unwrap();
    }
}
