//! How the operator is configured, beyond what every operator can be told: the keys that its predecessor had, each with an
//! effect.
//!
//! A key is given by a flag (`--github-token …`), in the environment (`GITHUB_TOKEN`) or in a file (`github-token: …`): [`keys`] has all of
//! them, with what they do. The first of the three counts. Keys that mean nothing any more are
//! taken, and named in [`HarborSettings::ignored`], so that a configuration which is there keeps working.

pub mod keys;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::api::duration::GoDuration;
use crate::api::notary::KeyAlgorithm;

/// The word for the controller of HarborClusters. Names of children have another: [`Parent::CONTROLLER`](crate::api::children::Parent::CONTROLLER).
pub const HARBOR_CLUSTER: &str = "harborcluster";

/// The words for all controllers.
pub const CONTROLLERS: [&str; 12] = [
    "chartmuseum",
    "core",
    "exporter",
    "harbor",
    HARBOR_CLUSTER,
    "jobservice",
    "notaryserver",
    "notarysigner",
    "portal",
    "registry",
    "registryctl",
    "trivy",
];

/// Keys that have no effect any more: what they set is a flag now, or is gone.
const WITHOUT_EFFECT: [&str; 11] = [
    "watch-children",
    "controllers-config-directory",
    "template-directory",
    "template-path",
    "template-content",
    "operator",
    "jaeger",
    "dev-mode",
    "log-level",
    "requeue-after-minutes",
    "notary-migration-github-source",
];

/// Controllers of the predecessor that this operator does not have: whether they run is not its business.
const NOT_HERE: [&str; 5] =
    ["harborconfiguration", "harborproject", "harborserverconfiguration", "namespace", "pullsecretbinding"];

/// How the operator is configured.
#[derive(Clone, PartialEq, Eq)]
pub struct HarborSettings {
    /// `classname`: only objects of this class are looked after.
    pub class: Option<String>,
    /// `max-concurrent-reconciliation`, or `max-reconcile`, which the predecessor's files had and nobody read: how many objects each controller works on at the same time.
    pub workers: Option<usize>,
    /// `network-policies`: whether NetworkPolicies are made where an object does not say.
    pub network_policies: bool,
    /// `controllers`: those that run, where not all do.
    pub chosen: Option<BTreeSet<String>>,
    /// `<controller>-controller-disabled`: controllers that do not run.
    pub disabled: BTreeSet<String>,
    /// `<controller>-webhook-disabled`: kinds that are stored without being judged. The predecessor took it for its opposite.
    pub unjudged: BTreeSet<String>,
    /// `trivy-github-credentials` or `github-token`: Trivy's, where a Harbor names none.
    pub github_token: Option<String>,
    /// `registry-encryption-cost`: of the registry's password.
    pub registry_encryption_cost: u32,
    /// `internal-tls-certificate-authority-duration`.
    pub internal_authority_duration: Duration,
    /// `internal-tls-duration`.
    pub internal_certificate_duration: Duration,
    /// `notary-signer-certificate-authority-duration`.
    pub notary_authority_duration: Duration,
    /// `notaryserver-certificate-duration` and `notaryserver-certificate-algorithm`.
    pub notary_server: CertificateSettings,
    /// `notarysigner-certificate-duration` and `notarysigner-certificate-algorithm`.
    pub notary_signer: CertificateSettings,
    /// `postgresql-max-connections`: of databases that Zalando's operator runs, and of built-in ones.
    pub postgresql_max_connections: u32,
    /// `IMAGE_SOURCE_REPOSITORY`: before the names of all images, where an object does not say.
    pub image_repository: Option<String>,
    /// `IMAGE_SOURCE_TAG_SUFFIX`: after the tags of all images, where an object does not say.
    pub image_tag_suffix: Option<String>,
    /// `POSTGRES_SECRETS_TEMPLATE`: the name of a Secret of Zalando's operator, with `{username}` and `{cluster}` in it.
    pub postgres_secrets_template: String,
    /// Keys that were given and have no effect.
    pub ignored: BTreeSet<String>,
}

/// How a certificate is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateSettings {
    /// How long it is valid.
    pub duration: Duration,
    /// Of which sort its key is.
    pub algorithm: KeyAlgorithm,
}

const QUARTER: Duration = Duration::from_hours(90 * 24);
const YEAR: Duration = Duration::from_hours(365 * 24);

impl Default for HarborSettings {
    fn default() -> Self {
        let certificate = CertificateSettings { duration: QUARTER, algorithm: KeyAlgorithm::Ecdsa };
        Self {
            class: None,
            workers: None,
            network_policies: false,
            chosen: None,
            disabled: BTreeSet::new(),
            unjudged: BTreeSet::new(),
            github_token: None,
            registry_encryption_cost: 10,
            internal_authority_duration: YEAR,
            internal_certificate_duration: QUARTER,
            notary_authority_duration: YEAR,
            notary_server: certificate,
            notary_signer: certificate,
            postgresql_max_connections: 1024,
            image_repository: None,
            image_tag_suffix: None,
            postgres_secrets_template: "{username}.{cluster}.credentials".into(),
            ignored: BTreeSet::new(),
        }
    }
}

/// The token is nobody's business.
impl fmt::Debug for HarborSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarborSettings")
            .field("class", &self.class)
            .field("disabled", &self.disabled)
            .field("network_policies", &self.network_policies)
            .finish_non_exhaustive()
    }
}

/// A key whose value makes no sense. What is secret can be anything, so the value may be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongSetting {
    /// A value that cannot be.
    #[error("{key} cannot be {value:?}: {remedy}")]
    Value {
        /// The key.
        key: String,
        /// What it is set to.
        value: String,
        /// What it can be.
        remedy: &'static str,
    },
    /// A key that is none.
    #[error("there is no setting {0}: look for a typing error, or at those that --help shows")]
    Unknown(String),
}

impl HarborSettings {
    /// These keys and values, of a file or the environment, over what is set. What cannot be is an error; keys of the
    /// environment that are none of ours are the caller's to leave out, by [`is_key`](Self::is_key).
    pub fn with<K: AsRef<str>, V: AsRef<str>>(
        mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, WrongSetting> {
        for (key, value) in pairs {
            self.set(&normal(key.as_ref()), value.as_ref().trim())?;
        }
        Ok(self)
    }

    /// Whether a name, as in a file or in the environment, is one of our keys.
    pub fn is_key(name: &str) -> bool {
        !matches!(Self::default().set(&normal(name), ""), Err(WrongSetting::Unknown(_)))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongSetting> {
        let wrong = |remedy| WrongSetting::Value { key: key.to_owned(), value: value.to_owned(), remedy };
        let truth = || match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" | "" => Ok(false),
            _ => Err(wrong("write true or false")),
        };
        let time = || GoDuration::from(value).get().map_err(|_| wrong("write a time, such as 2160h"));
        let count =
            || value.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| wrong("write a number above 0"));
        let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
        let algorithm = || {
            let known = KeyAlgorithm::ALL.iter().find(|known| known.as_str().eq_ignore_ascii_case(value));
            known.copied().ok_or_else(|| wrong("write ecdsa, rsa or ed25519"))
        };
        match key {
            "classname" => self.class = text(),
            "controllers" => {
                let words: BTreeSet<String> = value
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty())
                    .map(str::to_owned)
                    .collect();
                if words.iter().any(|word| !CONTROLLERS.contains(&&**word)) {
                    return Err(wrong(
                        "write words of chartmuseum, core, exporter, harbor, harborcluster, jobservice, notaryserver, \
                         notarysigner, portal, registry, registryctl, trivy, with commas between them",
                    ));
                }
                self.chosen = Some(words).filter(|words| !words.is_empty());
            }
            "max-concurrent-reconciliation" => self.workers = usize::try_from(count()?).ok(),
            "max-reconcile" => self.workers = self.workers.or(usize::try_from(count()?).ok()),
            "network-policies" => self.network_policies = truth()?,
            // The one that is meant for Trivy wins, whichever is set first.
            "trivy-github-credentials" => self.github_token = text().or(self.github_token.take()),
            "github-token" => self.github_token = self.github_token.take().or(text()),
            "registry-encryption-cost" => {
                let cost = count()?;
                // What bcrypt can do.
                self.registry_encryption_cost = if (4..=31).contains(&cost) {
                    cost
                } else {
                    return Err(wrong("write a number from 4 to 31"));
                };
            }
            "internal-tls-certificate-authority-duration" => self.internal_authority_duration = time()?,
            "internal-tls-duration" => self.internal_certificate_duration = time()?,
            "notary-signer-certificate-authority-duration" => self.notary_authority_duration = time()?,
            "notaryserver-certificate-duration" => self.notary_server.duration = time()?,
            "notarysigner-certificate-duration" => self.notary_signer.duration = time()?,
            "notaryserver-certificate-algorithm" => self.notary_server.algorithm = algorithm()?,
            "notarysigner-certificate-algorithm" => self.notary_signer.algorithm = algorithm()?,
            "postgresql-max-connections" => self.postgresql_max_connections = count()?,
            "image-source-repository" => self.image_repository = text(),
            "image-source-tag-suffix" => self.image_tag_suffix = text(),
            "postgres-secrets-template" => {
                if !(value.contains("{username}") && value.contains("{cluster}")) {
                    return Err(wrong("write a name with {username} and {cluster} in it"));
                }
                value.clone_into(&mut self.postgres_secrets_template);
            }
            _ if WITHOUT_EFFECT.contains(&key) => drop(self.ignored.insert(key.to_owned())),
            _ => {
                let (run, judge) =
                    (key.strip_suffix("-controller-disabled"), key.strip_suffix("-webhook-disabled"));
                if run.or(judge).is_some_and(|word| NOT_HERE.contains(&word)) {
                    self.ignored.insert(key.to_owned());
                    return Ok(());
                }
                let ours = |word: &&str| CONTROLLERS.contains(word);
                let (off, word) = match (run.filter(ours), judge.filter(ours)) {
                    (Some(word), _) => (&mut self.disabled, word),
                    (None, Some(word)) => (&mut self.unjudged, word),
                    (None, None) => return Err(WrongSetting::Unknown(key.to_owned())),
                };
                if truth()? {
                    off.insert(word.to_owned());
                } else {
                    off.remove(word);
                }
            }
        }
        Ok(())
    }

    /// Whether a controller runs, by its word.
    pub fn runs(&self, controller: &str) -> bool {
        let chosen = self.chosen.as_ref().is_none_or(|chosen| chosen.contains(controller));
        chosen && !self.disabled.contains(controller)
    }

    /// The name of a Secret of Zalando's operator.
    pub fn postgres_secret(&self, username: &str, cluster: &str) -> String {
        self.postgres_secrets_template.replace("{username}", username).replace("{cluster}", cluster)
    }
}

/// As it is in a file: the environment writes it otherwise.
fn normal(key: &str) -> String {
    key.to_ascii_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> Result<HarborSettings, WrongSetting> {
        HarborSettings::default().with([(key, value)])
    }

    #[test]
    fn every_key_has_an_effect() {
        let keys = [
            ("classname", "blue"),
            ("max-concurrent-reconciliation", "5"),
            ("NETWORK_POLICIES", "true"),
            ("controllers", "harbor, core"),
            ("core-controller-disabled", "true"),
            ("harborcluster-webhook-disabled", "true"),
            ("max-reconcile", "3"),
            ("github-token", "t"),
            ("trivy-github-credentials", "t"),
            ("registry-encryption-cost", "12"),
            ("internal-tls-certificate-authority-duration", "1h"),
            ("INTERNAL_TLS_DURATION", "1.5h"),
            ("notary-signer-certificate-authority-duration", "1h"),
            ("notaryserver-certificate-duration", "1h"),
            ("notarysigner-certificate-duration", "1h"),
            ("notaryserver-certificate-algorithm", "RSA"),
            ("notarysigner-certificate-algorithm", "ed25519"),
            ("postgresql-max-connections", "10"),
            ("IMAGE_SOURCE_REPOSITORY", "r"),
            ("IMAGE_SOURCE_TAG_SUFFIX", "-s"),
            ("POSTGRES_SECRETS_TEMPLATE", "{username}-{cluster}"),
        ];
        for (key, value) in keys {
            let settings = set(key, value).unwrap();
            assert!(settings != HarborSettings::default() && settings.ignored.is_empty(), "{key}");
            assert!(HarborSettings::is_key(key), "{key}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_said_with_its_value_and_a_remedy() {
        for (key, value) in [
            ("network-policies", "perhaps"),
            ("registry-encryption-cost", "99"),
            ("internal-tls-duration", "soon"),
            ("postgresql-max-connections", "-7"),
            ("postgres-secrets-template", "fixed"),
            ("notaryserver-certificate-algorithm", "rot13"),
            ("controllers", "harbor,kore"),
        ] {
            let error = set(key, value).unwrap_err().to_string();
            assert!(error.starts_with(key) && error.contains(value) && error.contains(": write "), "{error}");
        }
        assert_eq!(set("clasname", "x"), Err(WrongSetting::Unknown("clasname".into())));
        assert!(!HarborSettings::is_key("PATH"));
    }

    #[test]
    fn what_has_no_effect_any_more_is_taken_and_named() {
        let settings = HarborSettings::default();
        let settings = settings.with([("watch-children", "true"), ("jaeger", "{}")]).unwrap();
        assert_eq!(settings.ignored.into_iter().collect::<Vec<_>>(), ["jaeger", "watch-children"]);
        let settings = set("pullsecretbinding-controller-disabled", "true").unwrap();
        assert_eq!(
            settings.ignored.into_iter().collect::<Vec<_>>(),
            ["pullsecretbinding-controller-disabled"]
        );
    }

    #[test]
    fn the_token_that_is_meant_for_trivy_wins_and_is_not_shown() {
        for pairs in [
            [("github-token", "general"), ("trivy-github-credentials", "own")],
            [("trivy-github-credentials", "own"), ("github-token", "general")],
        ] {
            let settings = HarborSettings::default().with(pairs).unwrap();
            assert_eq!(settings.github_token.as_deref(), Some("own"));
            assert!(!format!("{settings:?}").contains("own"));
        }
    }
}
