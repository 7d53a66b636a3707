//! The facts that a certificate states.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::parse_x509_certificate;
use x509_parser::pem::parse_x509_pem;
use x509_parser::time::ASN1Time;

use crate::error::PkiError;
use crate::time::{BACKDATE, after};

/// The validity of a certificate at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The certificate is not valid yet. A clock that jumped forward and came back leaves such certificates
    /// behind; no verifier accepts them, so they count as absent.
    NotYet,
    /// The certificate is valid at this time.
    Valid,
    /// The certificate has expired.
    Ended,
}

/// The facts that a certificate states.
///
/// ```
/// use std::time::Duration;
/// use windlass_pki::{AuthorityRecipe, Certificate, Validity};
///
/// # fn main() -> Result<(), windlass_pki::PkiError> {
/// const DAY: Duration = Duration::from_hours(24);
/// let now = jiff::Timestamp::UNIX_EPOCH + 10 * DAY;
/// let authority = AuthorityRecipe::new("shop", 30 * DAY).make(now)?;
/// let authority = Certificate::from_pem(authority.certificate())?;
/// assert_eq!(authority.made(), now);
/// assert_eq!(authority.validity(now - DAY), Validity::NotYet);
/// assert_eq!(authority.validity(now + DAY), Validity::Valid);
/// assert_eq!(authority.validity(now + 30 * DAY), Validity::Ended);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    common_name: Option<String>,
    begins: Timestamp,
    ends: Timestamp,
    names: BTreeSet<String>,
    key_id: Option<Vec<u8>>,
    issuer_key_id: Option<Vec<u8>>,
}

impl Certificate {
    /// Reads the first certificate of a text in PEM.
    pub fn from_pem(pem: &str) -> Result<Self, PkiError> {
        let (_, pem) = parse_x509_pem(pem.as_bytes()).map_err(|_| PkiError::NotACertificate)?;
        Self::from_der(&pem.contents)
    }

    /// Reads a certificate in DER.
    pub fn from_der(der: &[u8]) -> Result<Self, PkiError> {
        let (_, parsed) = parse_x509_certificate(der).map_err(|_| PkiError::NotACertificate)?;
        Self::read(der, &parsed).ok_or(PkiError::NotACertificate)
    }

    fn read(der: &[u8], parsed: &X509Certificate<'_>) -> Option<Self> {
        let time = |time: ASN1Time| Timestamp::from_second(time.timestamp()).ok();
        let alternative = parsed.subject_alternative_name().ok()?;
        let names = alternative.iter().flat_map(|names| &names.value.general_names).filter_map(name);
        let common_name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        Some(Self {
            der: der.to_vec(),
            subject: parsed.subject().as_raw().to_vec(),
            issuer: parsed.issuer().as_raw().to_vec(),
            common_name: common_name.map(str::to_owned),
            begins: time(parsed.validity().not_before)?,
            ends: time(parsed.validity().not_after)?,
            names: names.collect(),
            key_id: extension(parsed, |extension| match extension {
                ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0.to_vec()),
                _ => None,
            }),
            issuer_key_id: extension(parsed, |extension| match extension {
                ParsedExtension::AuthorityKeyIdentifier(authority) => {
                    authority.key_identifier.as_ref().map(|key| key.0.to_vec())
                }
                _ => None,
            }),
        })
    }

    /// The first moment of its life (`notBefore`).
    pub fn begins(&self) -> Timestamp {
        self.begins
    }

    /// The moment at which it was made, if this crate made it: [`BACKDATE`] after [`begins`](Self::begins).
    pub fn made(&self) -> Timestamp {
        after(self.begins, BACKDATE)
    }

    /// The last moment of its life (`notAfter`).
    pub fn ends(&self) -> Timestamp {
        self.ends
    }

    /// Returns the validity at this moment, apart from who issued the certificate.
    pub fn validity(&self, now: Timestamp) -> Validity {
        if now < self.begins {
            Validity::NotYet
        } else if now < self.ends {
            Validity::Valid
        } else {
            Validity::Ended
        }
    }

    /// Returns true if its life has begun and is not over.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.validity(now) == Validity::Valid
    }

    /// The moment at which two thirds of its life are over.
    pub fn two_thirds(&self) -> Timestamp {
        let life = Duration::try_from(self.made().duration_until(self.ends)).unwrap_or_default();
        after(self.made(), life * 2 / 3)
    }

    /// Returns the common name of the certificate.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// Returns the subject alternative names: DNS names, and IP addresses in text.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Returns true if this is one of its subject alternative names.
    pub fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns true if this authority issued it: by the authority's name, and by its key where both
    /// certificates state one. Others renew an authority under its old name.
    pub fn is_issued_by(&self, authority: &Self) -> bool {
        let keys = self.issuer_key_id.as_ref().zip(authority.key_id.as_ref());
        self.issuer == authority.subject && keys.is_none_or(|(one, two)| one == two)
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => <[u8; 4]>::try_from(*bytes)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from))
            .ok()
            .map(|ip| ip.to_string()),
        _ => None,
    }
}

fn extension(
    certificate: &X509Certificate<'_>,
    of: impl Fn(&ParsedExtension<'_>) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    certificate.extensions().iter().find_map(|extension| of(extension.parsed_extension()))
}
