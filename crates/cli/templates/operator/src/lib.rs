{{if blueprint}}
//! The operator of {{kind}}: read [`api`] first (what a user writes), then [`blueprint`] (what that is made of).
{{end}}
{{if reconciler}}
//! The operator of {{kind}}: read [`api`] first (what a user writes), then [`controller`] (what is done about it).
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

/// The operator. Its program, its tests and its manifests are all made of this.
pub fn operator() -> Operator {
    Operator::new("{{name}}")
        .about("Serves every {{kind}}")
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
