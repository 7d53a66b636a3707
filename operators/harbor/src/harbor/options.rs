//! What an administrator of the operator decides for all Harbors.

use std::time::Duration;

use crate::config::htpasswd::DEFAULT_COST;

/// How Harbors are run, where their specs do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarborOptions {
    /// Before the names of images, where a Harbor has no `imageSource` (`IMAGE_SOURCE_REPOSITORY`).
    pub image_repository: Option<String>,
    /// After the tags of images, where a Harbor has no `imageSource` (`IMAGE_SOURCE_TAG_SUFFIX`).
    pub image_tag_suffix: Option<String>,
    /// Whether Harbors have network policies (`network-policies`); the annotation `goharbor.io/network-policies` of one wins.
    pub network_policies: bool,
    /// The cost of the hash of the registry's password (`registry-encryption-cost`).
    pub registry_encryption_cost: u32,
    /// How long the authority of a Harbor lives (`internal-tls-certificate-authority-duration`).
    pub authority_lifetime: Duration,
    /// How long certificates of components live (`internal-tls-duration`).
    pub certificate_lifetime: Duration,
    /// How long the authority of Notary lives (`notary-signer-certificate-authority-duration`).
    pub notary_authority_lifetime: Duration,
    /// How long certificates of the Notary server live (`notaryserver-certificate-duration`).
    pub notary_server_lifetime: Duration,
    /// How long certificates of the Notary signer live (`notarysigner-certificate-duration`).
    pub notary_signer_lifetime: Duration,
    /// A token of GitHub for Trivy, where a Harbor names none (`github-token`).
    pub github_token: Option<crate::config::Confidential>,
}

impl Default for HarborOptions {
    fn default() -> Self {
        let (year, quarter) = (Duration::from_hours(8760), Duration::from_hours(2160));
        Self {
            image_repository: None,
            image_tag_suffix: None,
            network_policies: false,
            registry_encryption_cost: DEFAULT_COST,
            authority_lifetime: year,
            certificate_lifetime: quarter,
            notary_authority_lifetime: year,
            notary_server_lifetime: quarter,
            notary_signer_lifetime: quarter,
            github_token: None,
        }
    }
}
