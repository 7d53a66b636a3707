//! The settings with their help texts, for `--help`, the environment and the settings file.

use windlass_operator::{Setting, SettingValues};

use super::{CONTROLLERS, HarborSettings};

/// Returns all settings with their help texts.
pub fn keys() -> Vec<Setting> {
    let one = Setting::new;
    let mut all = vec![
        one("classname", "NAME", "Reconcile only objects of this class (annotation goharbor.io/harbor-class); default: objects without a class"),
        Setting::new("controllers", "NAMES", format!("Controllers to run, separated by commas, out of {}; default: all", CONTROLLERS.join(","))),
        one("max-concurrent-reconciliation", "NUMBER", "Number of objects of a kind that are reconciled concurrently, unless --workers is set"),
        one("max-reconcile", "NUMBER", "Alias of max-concurrent-reconciliation, for older settings files").rare(),
        Setting::switch("network-policies", "Create NetworkPolicies, unless an object's annotation goharbor.io/network-policies says otherwise"),
        one("github-token", "TOKEN", "GitHub token for Trivy's downloads, for Harbors that name none; best set in the environment from a Secret").secret(),
        one("trivy-github-credentials", "TOKEN", "GitHub token for Trivy's downloads; takes precedence over github-token").secret().rare(),
        one("registry-encryption-cost", "NUMBER", "bcrypt cost of the registry's password, from 4 to 31; default: 10"),
        one("internal-tls-certificate-authority-duration", "TIME", "Validity of the CA of internal TLS; default: 8760h"),
        one("internal-tls-duration", "TIME", "Validity of the certificates of internal TLS; default: 2160h"),
        one("notary-signer-certificate-authority-duration", "TIME", "Validity of the CA between Notary server and signer; default: 8760h"),
        one("notaryserver-certificate-duration", "TIME", "Validity of the Notary server's certificate; default: 2160h"),
        one("notaryserver-certificate-algorithm", "NAME", "Key algorithm of the Notary server's certificate: ecdsa, rsa or ed25519; default: ecdsa"),
        one("notarysigner-certificate-duration", "TIME", "Validity of the Notary signer's certificate; default: 2160h"),
        one("notarysigner-certificate-algorithm", "NAME", "Key algorithm of the Notary signer's certificate: ecdsa, rsa or ed25519; default: ecdsa"),
        one("postgresql-max-connections", "NUMBER", "Connection limit of databases that this operator or Zalando's operator runs; default: 1024"),
        one("image-source-repository", "PREFIX", "Registry and path of images, unless an object sets one, such as harbor.example.com/mirror; default: goharbor"),
        one("image-source-tag-suffix", "SUFFIX", "Suffix of image tags, unless an object sets one; default: none"),
        one("postgres-secrets-template", "NAME", "Name of the Secrets of Zalando's operator; default: {username}.{cluster}.credentials"),
        Setting::switch("schema-check-disabled", "Never connect to databases: an upgrade then starts without reading the schema of Core's database"),
    ];
    for word in CONTROLLERS {
        let off = format!("Do not run the controller {word}");
        all.push(Setting::switch(format!("{word}-controller-disabled"), off).rare());
    }
    for word in CONTROLLERS {
        let off = format!("Accept objects of the controller {word} without validation");
        all.push(Setting::switch(format!("{word}-webhook-disabled"), off).rare());
    }
    all
}

impl HarborSettings {
    /// Reads the settings that a user has set. An error names the key, its value, the valid values, and the
    /// place where it is set.
    pub fn read(values: &SettingValues) -> Result<Self, String> {
        values.values().try_fold(Self::default(), |settings, (key, value)| {
            settings.with([(key, value)]).map_err(|error| {
                let source_of = values.source_of(key).unwrap_or_default();
                format!("{error} (set by {source_of})")
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_known_and_has_a_help_text() {
        for setting in keys() {
            assert!(HarborSettings::is_key(setting.key()), "{}", setting.key());
            assert!(HarborSettings::is_key(&setting.variable()), "{}", setting.variable());
        }
    }
}
