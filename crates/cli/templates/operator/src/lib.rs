{{if blueprint}}
//! The operator of {{kind}}: read [`api`] first (the kind), then [`blueprint`] (the objects that it consists
//! of).
{{end}}
{{if reconciler}}
//! The operator of {{kind}}: read [`api`] first (the kind), then [`controller`] (the reconcile function).
{{end}}
//!
//! This file puts them together.

pub mod api;
{{if blueprint}}
pub mod blueprint;
{{end}}
{{if reconciler}}
pub mod controller;
{{end}}
{{if webhooks}}
pub mod webhooks;
{{end}}

use windlass_operator::Operator;

/// Returns the operator. The program, the tests and the manifests all use it.
pub fn operator() -> Operator {
    Operator::new("{{name}}")
        .about("Reconciles every {{kind}} of the cluster")
        .version(env!("CARGO_PKG_VERSION"))
        .crd::<api::{{kind}}>()
{{if blueprint}}
        .blueprint(blueprint::{{kind}}Blueprint)
{{end}}
{{if reconciler}}
        .part(controller::set_up)
{{end}}
{{if webhooks}}
        .part(webhooks::set_up)
{{end}}
}

#[cfg(test)]
mod tests {
    /// Users read these texts in `kubectl explain` and `--help`, one line at a time.
    #[test]
    fn descriptions_and_flags_can_be_understood_alone() {
        windlass_operator::check_wording(&super::operator()).unwrap();
    }
}
