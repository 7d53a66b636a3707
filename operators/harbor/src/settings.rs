//! Settings of the Harbor operator, in addition to those of every operator: the keys of the upstream
//! operator.
//!
//! A key is set by a flag (`--github-token …`), in the environment (`GITHUB_TOKEN`) or in a file
//! (`github-token: …`), in this order of precedence; [`keys`] lists all of them with their help texts. Keys
//! that no longer have a meaning are accepted and listed in [`HarborSettings::ignored`], so that existing
//! configurations keep working.

pub mod keys;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::api::duration::GoDuration;
use crate::api::notary::KeyAlgorithm;

/// The name of the HarborCluster controller. Names of children have another:
/// [`Parent::CONTROLLER`](crate::api::children::Parent::CONTROLLER).
pub(crate) const HARBOR_CLUSTER: &str = "harborcluster";

/// Names of all controllers.
pub(crate) const CONTROLLERS: [&str; 12] = [
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

/// Keys without effect: they have become flags, or the feature no longer exists.
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

/// Controllers of the upstream operator that this operator does not have; their keys are ignored.
const NOT_HERE: [&str; 5] =
    ["harborconfiguration", "harborproject", "harborserverconfiguration", "namespace", "pullsecretbinding"];

/// Settings of the Harbor operator.
#[derive(Clone, PartialEq, Eq)]
pub struct HarborSettings {
    /// `classname`: reconcile only objects of this class.
    pub class: Option<String>,
    /// `max-concurrent-reconciliation`, or `max-reconcile` of upstream's files: number of objects that each
    /// controller reconciles concurrently.
    pub workers: Option<usize>,
    /// `network-policies`: create NetworkPolicies unless an object's annotation says otherwise.
    pub network_policies: bool,
    /// `controllers`: the controllers to run; `None` runs all.
    pub chosen: Option<BTreeSet<String>>,
    /// `<controller>-controller-disabled`: controllers that do not run.
    pub disabled: BTreeSet<String>,
    /// `<controller>-webhook-disabled`: kinds whose objects are not validated. The upstream operator inverted
    /// this setting by mistake.
    pub unjudged: BTreeSet<String>,
    /// `trivy-github-credentials` or `github-token`: GitHub token of Trivy, if a Harbor names none.
    pub github_token: Option<String>,
    /// `registry-encryption-cost`: bcrypt cost of the registry's password.
    pub registry_encryption_cost: u32,
    /// `internal-tls-certificate-authority-duration`: validity of the internal CA.
    pub internal_authority_duration: Duration,
    /// `internal-tls-duration`: validity of internal certificates.
    pub internal_certificate_duration: Duration,
    /// `notary-signer-certificate-authority-duration`: validity of the CA of Notary.
    pub notary_authority_duration: Duration,
    /// `notaryserver-certificate-duration` and `notaryserver-certificate-algorithm`.
    pub notary_server: CertificateSettings,
    /// `notarysigner-certificate-duration` and `notarysigner-certificate-algorithm`.
    pub notary_signer: CertificateSettings,
    /// `postgresql-max-connections`: connection limit of built-in databases and those of Zalando's operator.
    pub postgresql_max_connections: u32,
    /// `IMAGE_SOURCE_REPOSITORY`: registry and path in front of all image names, unless an object sets one.
    pub image_repository: Option<String>,
    /// `IMAGE_SOURCE_TAG_SUFFIX`: suffix of all image tags, unless an object sets one.
    pub image_tag_suffix: Option<String>,
    /// `POSTGRES_SECRETS_TEMPLATE`: name of the Secrets of Zalando's operator, with `{username}` and
    /// `{cluster}` as placeholders.
    pub postgres_secrets_template: String,
    /// `schema-check-disabled`: never connect to databases; the schema of Core's database is then unknown.
    pub schema_check_disabled: bool,
    /// Keys that are set and have no effect.
    pub ignored: BTreeSet<String>,
}

/// Validity and key algorithm of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateSettings {
    /// Validity of the certificate.
    pub duration: Duration,
    /// Algorithm of the certificate's key.
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
            schema_check_disabled: false,
            ignored: BTreeSet::new(),
        }
    }
}

/// Omits the GitHub token.
impl fmt::Debug for HarborSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HarborSettings")
            .field("class", &self.class)
            .field("disabled", &self.disabled)
            .field("network_policies", &self.network_policies)
            .finish_non_exhaustive()
    }
}

/// Error for an invalid setting. The value may be shown, because values of secret settings are never invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongSetting {
    /// The value is invalid.
    #[error("{key} cannot be {value:?}: {remedy}")]
    Value {
        /// Key of the setting.
        key: String,
        /// Value of the setting.
        value: String,
        /// Values that are valid.
        remedy: &'static str,
    },
    /// The key does not exist.
    #[error("there is no setting {0}: check the spelling, or see --help")]
    Unknown(String),
}

impl HarborSettings {
    /// Sets keys and values from a file or the environment on top of the current settings. Callers leave out
    /// unrelated environment variables.
    pub fn with<K: AsRef<str>, V: AsRef<str>>(
        mut self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, WrongSetting> {
        for (key, value) in pairs {
            self.set(&normal(key.as_ref()), value.as_ref().trim())?;
        }
        Ok(self)
    }

    /// Returns true if a name, as in a file or in the environment, is a key of these settings.
    #[cfg(test)]
    pub(crate) fn is_key(name: &str) -> bool {
        !matches!(Self::default().set(&normal(name), ""), Err(WrongSetting::Unknown(_)))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WrongSetting> {
        let wrong = |remedy| WrongSetting::Value { key: key.to_owned(), value: value.to_owned(), remedy };
        let truth = || match value.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" | "" => Ok(false),
            _ => Err(wrong("write true or false")),
        };
        let time = || GoDuration::from(value).get().map_err(|_| wrong("write a duration, such as 2160h"));
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
            // The token for Trivy takes precedence, whichever is set first.
            "trivy-github-credentials" => self.github_token = text().or(self.github_token.take()),
            "github-token" => self.github_token = self.github_token.take().or(text()),
            "registry-encryption-cost" => {
                let cost = count()?;
                // The range that bcrypt supports.
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
            "schema-check-disabled" => self.schema_check_disabled = truth()?,
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

    /// Returns true if the named controller runs.
    pub fn runs(&self, controller: &str) -> bool {
        let chosen = self.chosen.as_ref().is_none_or(|chosen| chosen.contains(controller));
        chosen && !self.disabled.contains(controller)
    }

    /// Returns the name of a Secret of Zalando's operator.
    pub(crate) fn postgres_secret(&self, username: &str, cluster: &str) -> String {
        self.postgres_secrets_template.replace("{username}", username).replace("{cluster}", cluster)
    }
}

/// Normalizes a key of the environment to the form used in files.
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
            ("schema-check-disabled", "true"),
        ];
        for (key, value) in keys {
            let settings = set(key, value).unwrap();
            assert!(settings != HarborSettings::default() && settings.ignored.is_empty(), "{key}");
            assert!(HarborSettings::is_key(key), "{key}");
        }
    }

    #[test]
    fn an_invalid_setting_is_an_error_with_its_value_and_a_remedy() {
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
    fn settings_without_effect_are_accepted_and_named() {
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
    fn the_trivy_token_takes_precedence_and_is_not_shown() {
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
