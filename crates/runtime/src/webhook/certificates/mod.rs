//! Certificates of the webhook server.
//!
//! [`Certificates`] are our own: a CA and the serving certificate (leaf) that it issues live in one Secret,
//! which all replicas share. The [`Keyring`](windlass_pki::rotation::Keyring) of `windlass-pki` decides,
//! without I/O, what is due when; any replica may execute it, with a write that fails if another replica was
//! faster. Every replica follows the Secret and serves its certificate. Only the leader writes the CA bundle
//! into the configurations that make the API server call us ([`Injector`]).
//!
//! The order makes a change harmless: a new CA is first announced (it is in all configurations), then waits
//! until every API server can be expected to have seen it, and only then issues the serving certificate. The
//! old CA stays trusted until the last certificate that it issued has expired. A certificate that is not
//! valid yet counts as absent: otherwise a clock that jumped forward and came back would leave us with one
//! that the API server rejects.
//!
//! [`CertificateFiles`] are maintained by another program: files, read again when they change.
//!
//! Neither ever logs a key.

mod files;
mod inject;
mod keyring;
mod secret;
mod serving;

pub use self::files::{CertificateFiles, FilesError};
pub use self::inject::{Injector, Target};
pub use self::keyring::KeyringError;
pub use self::secret::{Certificates, CertificatesError, Clock};
pub use self::serving::{BadPair, Serving};
pub use windlass_pki::rotation::Policy;
