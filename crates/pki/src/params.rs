//! The fields that all certificates of this crate have in common.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{CertificateParams, DistinguishedName, date_time_ymd};

use crate::error::PkiError;

/// Certificates hold whole seconds: fractions are cut off.
pub(crate) fn params(
    begins: Timestamp,
    ends: Timestamp,
    names: Vec<String>,
) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(names)?;
    let time = |time: Timestamp| {
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default())
    };
    params.not_before = time(begins);
    params.not_after = time(ends);
    params.distinguished_name = DistinguishedName::new();
    Ok(params)
}
