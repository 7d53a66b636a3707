//! Credentials that are generated once, and never again.
//!
//! Types, keys and sizes are those that Harbors have which others installed: a Secret's type cannot be changed, and what is encrypted
//! with a key needs that key. All values are letters and digits that begin with a letter: the registry reads its environment as YAML,
//! where `12e4` is a number.

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

/// Whom Core and the job service are at the registry.
pub const REGISTRY_USER: &str = "harbor_registry_user";
/// Whom Core is at ChartMuseum.
const CHART_USER: &str = "chart_controller";

/// What a credential is, in the order in which the plan has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// The registry's user and password.
    RegistryBasicAuth,
    /// What the registry signs the state of uploads with.
    RegistryHttp,
    /// Against forged requests.
    Csrf,
    /// By which others know Core.
    CoreSecret,
    /// The administrator's first password, where the user names none.
    AdminPassword,
    /// What is encrypted in Core's database is encrypted with it.
    EncryptionKey,
    /// By which others know the job service.
    JobServiceSecret,
    /// What encrypts the keys of signatures.
    NotarySignerKey,
}

impl Credential {
    /// The end of its name.
    pub const fn suffix(self) -> &'static str {
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

    /// Whether data is worthless without it.
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
            // AES takes exactly so many bytes.
            Self::EncryptionKey | Self::JobServiceSecret => single(word(random, 16)?),
            Self::NotarySignerKey => [("DEFAULT", word(random, 128)?)].into(),
        })
    }

    /// The Secret, with new random content.
    pub fn secret(self, names: &Names, random: &mut Random, cost: u32) -> Result<Secret, PlanError> {
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

    /// Its place in the plan. What data is worthless without outlives the Harbor, unless its user wants the data to go too.
    pub fn plan(self, names: &Names, cost: u32, policy: DeletionPolicy, plan: &mut Plan) -> Planned {
        let (own, keep) = (names.clone(), self.protects_data() && policy == DeletionPolicy::Retain);
        let planned =
            plan.create_once(names.with(self.suffix()), move |random| self.secret(&own, random, cost));
        if keep { planned.retain() } else { planned }
    }
}

/// Letters and digits, of which the first is a letter.
fn word(random: &mut Random, length: usize) -> Result<Confidential, PlanError> {
    loop {
        let word = random.alphanumeric(length)?;
        if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Ok(word.into());
        }
    }
}

/// A password that Harbor's own rules would accept.
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
    fn types_keys_sizes_and_immutability_are_those_of_ever() {
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
    fn the_registry_lets_in_whoever_has_the_password() {
        let secret = made(Credential::RegistryBasicAuth);
        let line = text(&secret, "htpasswd");
        let (user, hash) = line.trim_end().split_once(':').unwrap();
        assert_eq!(user, REGISTRY_USER);
        assert!(bcrypt::verify(text(&secret, "secret"), hash).unwrap());
    }
}
