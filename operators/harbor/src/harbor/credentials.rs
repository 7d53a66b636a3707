//! Credentials that are generated once and never regenerated.
//!
//! Types, keys and lengths are those of upstream: the type of a Secret is immutable, and encrypted data needs
//! its key. All values consist of letters and digits and begin with a letter, because the registry parses its
//! environment as YAML, where `12e4` is a number.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use windlass::{Plan, PlanError, Planned, Random};

use crate::api::harbor::DeletionPolicy;
use crate::api::names::annotation::IMMUTABLE;
use crate::config::Confidential;
use crate::config::htpasswd;

use super::names::{Names, metadata};

/// User name of Core and JobService at the registry.
pub(crate) const REGISTRY_USER: &str = "harbor_registry_user";
/// User name of Core at ChartMuseum.
const CHART_USER: &str = "chart_controller";

/// The generated credentials, in the order of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// User and password of the registry.
    RegistryBasicAuth,
    /// The secret with which the registry signs the state of uploads (`http.secret`).
    RegistryHttp,
    /// The key of Core's CSRF protection.
    Csrf,
    /// The secret with which Core authenticates to other components.
    CoreSecret,
    /// The initial administrator password, if the spec names none.
    AdminPassword,
    /// The key that encrypts values in Core's database.
    EncryptionKey,
    /// The secret with which JobService authenticates to other components.
    JobServiceSecret,
    /// The key that encrypts the signing keys of NotarySigner.
    NotarySignerKey,
}

impl Credential {
    /// Returns the suffix of the Secret's name.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::RegistryBasicAuth => "registry-basicauth",
            Self::RegistryHttp => "registry-http",
            Self::Csrf => "core-csrf",
            Self::CoreSecret => "core-secret",
            Self::AdminPassword => "core-admin-password",
            Self::EncryptionKey => "core-encryptionkey",
            Self::JobServiceSecret => "jobservice-secret",
            Self::NotarySignerKey => "notarysigner-encryption-key",
        }
    }

    const fn type_(self) -> &'static str {
        match self {
            Self::RegistryBasicAuth => "goharbor.io/htpasswd",
            Self::RegistryHttp => "goharbor.io/registry",
            Self::NotarySignerKey => "goharbor.io/notary-signer-aliases",
            Self::Csrf
            | Self::CoreSecret
            | Self::AdminPassword
            | Self::EncryptionKey
            | Self::JobServiceSecret => "goharbor.io/single",
        }
    }

    const fn immutable(self) -> Option<bool> {
        match self {
            Self::RegistryBasicAuth => Some(false),
            Self::NotarySignerKey => None,
            _ => Some(true),
        }
    }

    /// Returns true if data is unusable without the credential.
    const fn protects_data(self) -> bool {
        matches!(self, Self::EncryptionKey | Self::NotarySignerKey)
    }

    fn data(self, random: &mut Random, cost: u32) -> Result<BTreeMap<&'static str, Confidential>, PlanError> {
        let single = |value: Confidential| BTreeMap::from([("secret", value)]);
        Ok(match self {
            Self::RegistryBasicAuth => {
                let password = word(random, 32)?;
                let line = htpasswd::line(REGISTRY_USER, &password, cost, random.bytes()?)?;
                [("htpasswd", line), ("secret", password)].into()
            }
            Self::RegistryHttp => [("REGISTRY_HTTP_SECRET", word(random, 128)?)].into(),
            Self::Csrf => [("key", word(random, 32)?)].into(),
            Self::CoreSecret => {
                let secret = word(random, 128)?;
                [("secret", secret.clone()), ("username", CHART_USER.into()), ("password", secret)].into()
            }
            Self::AdminPassword => single(password(random)?),
            // AES-128 needs a key of exactly 16 bytes.
            Self::EncryptionKey | Self::JobServiceSecret => single(word(random, 16)?),
            Self::NotarySignerKey => [("DEFAULT", word(random, 128)?)].into(),
        })
    }

    /// Returns the Secret with new random content.
    pub(crate) fn secret(self, names: &Names, random: &mut Random, cost: u32) -> Result<Secret, PlanError> {
        let data = self.data(random, cost)?.into_iter();
        let mut metadata: ObjectMeta = metadata(names, names.with(self.suffix()));
        if self.immutable() == Some(true) {
            metadata.annotations.get_or_insert_default().insert(IMMUTABLE.to_owned(), "true".to_owned());
        }
        Ok(Secret {
            metadata,
            data: Some(data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).collect()),
            immutable: self.immutable(),
            type_: Some(self.type_().to_owned()),
            ..Secret::default()
        })
    }

    /// Adds the Secret to the plan. A credential that protects data is retained when the Harbor is deleted,
    /// unless the deletion policy deletes the data too.
    pub(crate) fn plan(self, names: &Names, cost: u32, policy: DeletionPolicy, plan: &mut Plan) -> Planned {
        let (own, keep) = (names.clone(), self.protects_data() && policy == DeletionPolicy::Retain);
        let planned =
            plan.create_once(names.with(self.suffix()), move |random| self.secret(&own, random, cost));
        if keep { planned.retain() } else { planned }
    }
}

/// Returns random letters and digits that begin with a letter.
fn word(random: &mut Random, length: usize) -> Result<Confidential, PlanError> {
    loop {
        let word = random.alphanumeric(length)?;
        if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Ok(word.into());
        }
    }
}

/// Returns a random password that Harbor's password rules accept.
fn password(random: &mut Random) -> Result<Confidential, PlanError> {
    loop {
        let password = word(random, 32)?;
        let has = |kind: fn(&char) -> bool| password.expose().chars().any(|c| kind(&c));
        if has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) && has(char::is_ascii_digit) {
            return Ok(password);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::harbor;

    const ALL: [Credential; 8] = [
        Credential::RegistryBasicAuth,
        Credential::RegistryHttp,
        Credential::Csrf,
        Credential::CoreSecret,
        Credential::AdminPassword,
        Credential::EncryptionKey,
        Credential::JobServiceSecret,
        Credential::NotarySignerKey,
    ];

    fn made(credential: Credential) -> Secret {
        let names = Names::of(&harbor("2.6.2", false));
        credential.secret(&names, &mut Random::new(), 4).unwrap()
    }

    fn text(secret: &Secret, key: &str) -> String {
        String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
    }

    #[test]
    fn types_keys_and_lengths_of_credentials_never_change() {
        let seen: Vec<String> = ALL
            .map(made)
            .iter()
            .map(|secret| {
                let data = secret.data.as_ref().unwrap();
                let sizes: Vec<String> =
                    data.iter().map(|(key, value)| format!("{key}={}", value.0.len())).collect();
                let name = secret.metadata.name.as_deref().unwrap();
                let type_ = secret.type_.as_deref().unwrap();
                let marked = secret.metadata.annotations.as_ref().unwrap().contains_key(IMMUTABLE);
                format!("{name} {type_} {:?} {marked} {}", secret.immutable, sizes.join(" "))
            })
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @"
        sample-harbor-registry-basicauth goharbor.io/htpasswd Some(false) false htpasswd=82 secret=32
        sample-harbor-registry-http goharbor.io/registry Some(true) true REGISTRY_HTTP_SECRET=128
        sample-harbor-core-csrf goharbor.io/single Some(true) true key=32
        sample-harbor-core-secret goharbor.io/single Some(true) true password=128 secret=128 username=16
        sample-harbor-core-admin-password goharbor.io/single Some(true) true secret=32
        sample-harbor-core-encryptionkey goharbor.io/single Some(true) true secret=16
        sample-harbor-jobservice-secret goharbor.io/single Some(true) true secret=16
        sample-harbor-notarysigner-encryption-key goharbor.io/notary-signer-aliases None false DEFAULT=128
        ");
    }

    #[test]
    fn values_survive_yaml_and_are_never_the_same_twice() {
        for credential in ALL {
            let (one, two) = (made(credential), made(credential));
            for key in one.data.as_ref().unwrap().keys().filter(|key| *key != "username") {
                let value = text(&one, key);
                assert_ne!(value, text(&two, key));
                if key != "htpasswd" {
                    let parsed: serde_json::Value = serde_saphyr::from_str(&value).unwrap();
                    assert_eq!(parsed, value.as_str(), "{credential:?}");
                    assert!(value.starts_with(|c: char| c.is_ascii_alphabetic()));
                }
            }
        }
    }

    #[test]
    fn the_htpasswd_of_the_registry_matches_its_password() {
        let secret = made(Credential::RegistryBasicAuth);
        let line = text(&secret, "htpasswd");
        let (user, hash) = line.trim_end().split_once(':').unwrap();
        assert_eq!(user, REGISTRY_USER);
        assert!(bcrypt::verify(text(&secret, "secret"), hash).unwrap());
    }
}
