//! A verifier for tests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

pub(crate) const DAY: Duration = Duration::from_hours(24);

pub(crate) fn day(days: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
}

/// Returns true if a TLS client that trusts these authorities accepts this certificate for that name then.
pub(crate) fn believed(bundle: &str, shown: &str, name: &str, now: Timestamp) -> bool {
    let mut roots = rustls::RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
    let certificate = CertificateDer::from_pem_slice(shown.as_bytes()).unwrap();
    let at = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second().try_into().unwrap()));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(&certificate, &[], &name, &[], at).is_ok()
}
