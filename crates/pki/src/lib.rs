//! Certificate authorities, leaf certificates, and their rotation without an interruption of trust.
//!
//! ```
//! use std::time::Duration;
//! use jiff::Timestamp;
//! use windlass_pki::{Algorithm, AuthorityRecipe, Bundle, Certificate, LeafRecipe, PrivateKey};
//!
//! # fn main() -> Result<(), windlass_pki::PkiError> {
//! const DAY: Duration = Duration::from_hours(24);
//! let now: Timestamp = "2026-11-18T00:00:00Z".parse().unwrap_or_default();
//!
//! let authority = AuthorityRecipe::new("shop", 730 * DAY).make(now)?;
//! let recipe = LeafRecipe::new().names(["shop.example", "10.0.0.7"]).server();
//! let leaf = recipe.issue(&authority, PrivateKey::generate(Algorithm::EcdsaP256)?, 90 * DAY, now)?;
//!
//! let certificate = Certificate::from_pem(leaf.certificate())?;
//! assert!(certificate.has_name("shop.example") && certificate.is_valid_at(now));
//! assert!(Bundle::of([authority.certificate()]).trusts(&certificate, now));
//! # Ok(())
//! # }
//! ```
//!
//! # What it promises
//!
//! - **Pure.** The time is an argument, and what is stored is an argument. Only keys and serial numbers are
//!   random. A certificate's life of years is a unit test.
//! - **A certificate that is not valid yet counts as absent**, like one that has ended. It is what a clock
//!   leaves behind that jumped forward and came back. See [`Validity`].
//! - **A rotation interrupts nobody.** Both kinds of [`rotation`] trust a new authority before it issues, and
//!   an old one until no certificate of it is served. A property test moves the clock in both directions and
//!   ends the process between any two writes.
//! - **No key is printed.** `Debug` of everything that holds one leaves it out, and no error names content.
//!
//! # What it does not do
//!
//! - It stores nothing and knows no Kubernetes: callers map its values to their Secrets.
//! - It has no clock and no tasks: every decision comes with the time at which to decide again.
//! - It does not revoke certificates and issues no intermediate authorities.
//!
//! # Where things are
//!
//! | module | contents |
//! | --- | --- |
//! | [`authority`] | recipes of authorities |
//! | [`leaf`] | recipes of certificates for servers and clients |
//! | [`key`] | private keys: made, and read in every form in use |
//! | [`bundle`] | the authorities that a verifier trusts |
//! | [`reading`] | the facts that a certificate states |
//! | [`rotation`] | when to make, to issue and to forget, in two variants |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod authority;
pub mod bundle;
mod error;
pub mod key;
pub mod leaf;
mod pair;
mod params;
pub mod reading;
pub mod rotation;
mod time;

pub use authority::AuthorityRecipe;
pub use bundle::Bundle;
pub use error::PkiError;
pub use key::{Algorithm, PrivateKey};
pub use leaf::LeafRecipe;
pub use pair::Pair;
pub use reading::{Certificate, Validity};
pub use time::BACKDATE;

#[cfg(test)]
mod testing;
