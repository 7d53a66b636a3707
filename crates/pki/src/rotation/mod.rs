//! Rotation: the next authority is trusted before it issues, and the last one until no certificate of it is
//! served.
//!
//! There are two variants, because there are two ways in which verifiers learn whom to trust.
//!
//! | | [`keyring`] | [`succession`] |
//! | --- | --- | --- |
//! | stored | all authorities and the one serving certificate, in one object | the authority in one object, each certificate with a copy of the bundle in another |
//! | verifiers learn whom to trust | from configurations, which somebody writes and then [announces](keyring::Keyring::announce) | from the bundle beside their own certificate |
//! | a new authority issues | when it was announced and had time to settle | when every certificate's bundle has it, and their readers had half of the overlap to read it |
//! | an old authority is forgotten | when the last certificate of it has ended | when no certificate is of it any more, and their readers had half of the overlap to read the new ones |
//! | used for | webhooks | TLS between the parts of one installation |
//!
//! Both wait by the clock for readers that do not acknowledge what they have read. A clock that jumps forward
//! while somebody still has to read ends such a wait early; that is the one thing that no rule here can mend.

pub mod keyring;
pub mod succession;

pub use keyring::{Keyring, Policy, Trusted};
pub use succession::{InUse, Previous, Succession};
