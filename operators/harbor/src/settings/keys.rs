//! The settings as a user finds them: in `--help`, in the environment, in a file.

use windlass_operator::{Given, Setting};

use super::{CONTROLLERS, HarborSettings};

/// All settings, with what they do.
pub fn keys() -> Vec<Setting> {
    let one = Setting::new;
    let mut all = vec![
        one("classname", "NAME", "Look after objects of this class only (annotation goharbor.io/harbor-class); otherwise after those without one"),
        Setting::new("controllers", "NAMES", format!("The controllers to run: some of {}; otherwise all", CONTROLLERS.join(","))),
        one("max-concurrent-reconciliation", "NUMBER", "How many objects of a kind are worked on at the same time, where --workers does not say"),
        one("max-reconcile", "NUMBER", "The same, by the name that older files have").rare(),
        Setting::switch("network-policies", "Make NetworkPolicies where an object does not say (annotation goharbor.io/network-policies)"),
        one("github-token", "TOKEN", "The token with which Trivy asks GitHub, where a Harbor names none; best in the environment, out of a Secret").secret(),
        one("trivy-github-credentials", "TOKEN", "The same, and counts before it").secret().rare(),
        one("registry-encryption-cost", "NUMBER", "The cost of bcrypt for the registry's password, from 4 to 31; otherwise 10"),
        one("internal-tls-certificate-authority-duration", "TIME", "How long the authority of internal TLS is valid; otherwise 8760h"),
        one("internal-tls-duration", "TIME", "How long a certificate of internal TLS is valid; otherwise 2160h"),
        one("notary-signer-certificate-authority-duration", "TIME", "How long the authority between Notary's server and signer is valid; otherwise 8760h"),
        one("notaryserver-certificate-duration", "TIME", "How long the certificate of Notary's server is valid; otherwise 2160h"),
        one("notaryserver-certificate-algorithm", "NAME", "The sort of its key: ecdsa, rsa or ed25519; otherwise ecdsa"),
        one("notarysigner-certificate-duration", "TIME", "How long the certificate of Notary's signer is valid; otherwise 2160h"),
        one("notarysigner-certificate-algorithm", "NAME", "The sort of its key: ecdsa, rsa or ed25519; otherwise ecdsa"),
        one("postgresql-max-connections", "NUMBER", "How many connections a database that this operator asks for allows; otherwise 1024"),
        one("image-source-repository", "PREFIX", "Where images come from, where an object does not say: harbor.example.com/mirror; otherwise goharbor"),
        one("image-source-tag-suffix", "SUFFIX", "What is put after the tags of images, where an object does not say"),
        one("postgres-secrets-template", "NAME", "The name of a Secret of Zalando's operator; otherwise {username}.{cluster}.credentials"),
    ];
    for word in CONTROLLERS {
        let off = format!("Do not run the controller {word}");
        all.push(Setting::switch(format!("{word}-controller-disabled"), off).rare());
    }
    for word in CONTROLLERS {
        let off = format!("Store objects of the controller {word} without judging them");
        all.push(Setting::switch(format!("{word}-webhook-disabled"), off).rare());
    }
    all
}

impl HarborSettings {
    /// Of what a user gave. An error names the key, its value, what it can be, and where it stands.
    pub fn given(given: &Given) -> Result<Self, String> {
        given.values().try_fold(Self::default(), |settings, (key, value)| {
            settings.with([(key, value)]).map_err(|error| {
                let whence = given.whence(key).unwrap_or_default();
                format!("{error} (set by {whence})")
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_one_that_is_understood_and_says_what_it_does() {
        for setting in keys() {
            assert!(HarborSettings::is_key(setting.key()), "{}", setting.key());
            assert!(HarborSettings::is_key(&setting.variable()), "{}", setting.variable());
        }
    }
}
