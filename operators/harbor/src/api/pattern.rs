//! What texts must look like, for the API server.
//!
//! The definitions that these kinds succeed have patterns that match anywhere in a text, so that they refuse less than they
//! seem to. What was accepted must stay so: ours are anchored only where the rest could never have worked.

/// The name of an object: what matters is that there is one; the API server knows the rest.
pub(crate) const NAME: &str = "[a-z0-9]";
/// A URL of http or https.
pub(crate) const URL: &str = "https?://.+";
/// The URL under which users reach Harbor.
pub(crate) const EXTERNAL_URL: &str = "https?://.*";
/// A path that has a name.
pub(crate) const PATH: &str = "/.+";
/// A semantic version, with what may follow it (`-rc1`).
pub(crate) const VERSION: &str = r"^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?$";
/// The prefix of the registry's paths.
pub(crate) const PREFIX: &str = "(/(.+/)?)?";
/// A region of Alibaba's OSS.
pub(crate) const OSS_REGION: &str = "oss-.*";
