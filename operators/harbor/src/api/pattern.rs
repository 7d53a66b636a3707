//! Regular expressions of string fields, which the API server checks.
//!
//! The patterns of the upstream CRDs are not anchored and therefore reject less than they seem to. Accepted
//! values must stay accepted: patterns are anchored here only where other values could never have worked.

/// Name of an object: only that it is not empty; the API server checks the rest when the object is looked up.
pub(crate) const NAME: &str = "[a-z0-9]";
/// URL with scheme http or https.
pub(crate) const URL: &str = "https?://.+";
/// URL under which users reach Harbor.
pub(crate) const EXTERNAL_URL: &str = "https?://.*";
/// URL path with at least one character after the slash.
pub(crate) const PATH: &str = "/.+";
/// Semantic version with an optional suffix such as `-rc1`.
pub(crate) const VERSION: &str = r"^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?$";
/// Path prefix of the registry's routes.
pub(crate) const PREFIX: &str = "(/(.+/)?)?";
/// Region of Alibaba Cloud OSS.
pub(crate) const OSS_REGION: &str = "oss-.*";
