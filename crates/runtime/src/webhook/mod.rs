//! Webhooks: admission and conversion requests of the API server.
//!
//! It promises:
//! - **Typed and small.** A [`Defaulter`] changes an object, a [`Validator`] reports what is wrong with it, a
//!   [`Converter`] is made of pure functions; reviews, patches, versions and HTTP are handled here.
//! - **User data is kept.** A patch contains only the changes of the defaulter, also where its type does not
//!   know all fields.
//! - **There is always an answer.** Whatever arrives, the answer says what is wrong with it. A panic fails
//!   one request, and the server continues.
//! - **Own certificates.** [`Certificates`] issues, stores, shares, renews and announces them; no request
//!   fails while they change. Or [`CertificateFiles`] follows files that another program maintains.
//!
//! It does not: register webhooks (apply their configurations with your other manifests; an [`Injector`] adds
//! the CA bundle), or call other webhooks.
//!
//! ```no_run
//! use windlass_runtime::client::Client;
//! use windlass_runtime::key::ObjectKey;
//! use windlass_runtime::manager::{Manager, Stage};
//! use windlass_runtime::serve::Listener;
//! use windlass_runtime::webhook::{Certificates, Target, Validator, WebhookServer, Webhooks};
//!
//! # async fn example(client: Client, rules: impl Validator) -> Result<(), Box<dyn std::error::Error>> {
//! let mut manager = Manager::new();
//! let certificates = Certificates::in_secret(
//!     &client,
//!     ObjectKey::namespaced("shop", "shop-webhooks"),
//!     ["shop-webhooks.shop.svc"],
//! );
//! let server = WebhookServer::new(
//!     Listener::bind(([0, 0, 0, 0], 9443))?,
//!     Webhooks::new().validator(rules)?,
//!     certificates.serving(),
//!     manager.metrics(),
//! );
//! manager.add(Stage::Webhooks, certificates.runnable())?;
//! manager.add(Stage::Webhooks, server.into_runnable())?;
//! // Only the leader tells the API server whom to trust.
//! manager.add(Stage::Controllers, certificates.injector([Target::validating("shop")]).into_runnable())?;
//! # Ok(())
//! # }
//! ```

mod admission;
pub mod certificates;
mod conversion;
mod denial;
mod hooks;
mod metrics;
mod patch;
mod review;
mod server;

pub use self::admission::{Defaulter, Findings, Operation, Request, Validator};
pub use self::certificates::{CertificateFiles, Certificates, Injector, Serving, Target};
pub use self::conversion::{ConversionError, Converter, ConverterError};
pub use self::denial::Denial;
pub use self::hooks::{CONVERT, DuplicateHook, PathError, Webhooks, mutate_path, validate_path};
pub use self::review::GroupVersionResource;
pub use self::server::WebhookServer;
