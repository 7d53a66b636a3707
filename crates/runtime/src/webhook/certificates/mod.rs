//! The webhook server's certificates.
//!
//! [`Certificates`] are our own: an authority (CA) and the serving certificate (leaf) that it issues live in one Secret, which
//! all replicas share. What is to be done when is decided by the [`Keyring`](windlass_pki::rotation::Keyring) of `windlass-pki`,
//! without I/O; whoever finds something to do does it, with a write that fails if somebody else was faster. Every replica follows the Secret and serves what it holds.
//! The leader alone writes the authorities into the configurations that make the API server call us ([`Injector`]).
//!
//! The order is what makes a change harmless: a new authority is first announced (it is in all configurations), then waits until
//! every API server can be expected to have seen that, and only then issues the serving certificate. The old one stays
//! trusted until the last certificate that it issued has expired. A certificate that is not valid yet counts as absent: a clock that jumped
//! forward and came back would otherwise leave us with one that the API server refuses.
//!
//! [`CertificateFiles`] are somebody else's: files, read again when they change.
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
