//! Kind Harbor: all components, wired together.
//!
//! Read [`blueprint`] first: it is the whole graph, one line a node. The other files say what the nodes are: [`credentials`] and
//! [`tls`] what is generated, [`token`] the key that signs tokens, [`components`] what each component is told of the others,
//! [`expose`] and [`proxy`] how users come in, [`policies`] who may talk to whom; [`names`] what all of it is called.
//!
//! Nothing here runs pods, but for the [`proxy`]: that is the business of the components' own controllers.

pub mod blueprint;
mod certificates;
pub mod certmanager;
pub mod components;
pub mod credentials;
pub mod expose;
pub mod names;
pub mod pki;
pub mod policies;
pub mod proxy;
mod secrets;
pub mod tls;
pub mod token;
pub mod upgrade;

pub use blueprint::HarborBlueprint;
