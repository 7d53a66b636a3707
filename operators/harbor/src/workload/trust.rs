//! Certificate authorities that a component trusts beside those of its image.
//!
//! Harbor's images add to their own whatever they find in one directory when they start. All authorities come into it as one volume: a
//! file that is mounted by itself would keep its first content for ever.

use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, SecretProjection, Volume, VolumeMount, VolumeProjection,
};

use super::Sources;
use super::volume::mount;

/// Where images look for more authorities.
const DIRECTORY: &str = "/harbor_cust_cert";
const VOLUME: &str = "trusted-certificates";

/// Authorities, each from the `ca.crt` of a Secret.
#[derive(Clone, Debug, Default)]
pub struct Trust(Vec<Authority>);

#[derive(Clone, Debug)]
struct Authority {
    secret: String,
    file: String,
    optional: Option<bool>,
}

impl Trust {
    /// Trusts the authority of this Secret, under a file name of its own. The Secret has to have one.
    pub fn add(&mut self, sources: &mut Sources<'_>, field: &str, secret: &str, file: impl Into<String>) {
        sources.files(field, secret, &["ca.crt"]);
        self.push(secret, file.into(), None);
    }

    /// The same, if the Secret has one: a public certificate may be of an authority that everybody knows.
    pub fn add_if_there(
        &mut self,
        sources: &mut Sources<'_>,
        field: &str,
        secret: &str,
        file: impl Into<String>,
    ) {
        sources.files(field, secret, &[]);
        self.push(secret, file.into(), Some(true));
    }

    /// The authorities that a user has added: `<secret>.crt` each.
    pub fn add_all(&mut self, sources: &mut Sources<'_>, field: &str, secrets: &[String]) {
        for secret in secrets {
            self.add(sources, field, secret, format!("{secret}.crt"));
        }
    }

    /// Each file once, since the server refuses a volume with two of one name: one Redis may be named in two places,
    /// and a Secret may be called as another's file is.
    fn push(&mut self, secret: &str, mut file: String, optional: Option<bool>) {
        while let Some(there) = self.0.iter().find(|there| there.file == file) {
            if there.secret == secret {
                return;
            }
            file = format!("other-{file}");
        }
        self.0.push(Authority { secret: secret.to_owned(), file, optional });
    }

    /// The volume and where it is mounted; none if nothing is added.
    pub fn volume(self) -> Option<(Volume, VolumeMount)> {
        if self.0.is_empty() {
            return None;
        }
        let sources = self.0.into_iter().map(projection).collect();
        let projected = ProjectedVolumeSource { sources: Some(sources), ..ProjectedVolumeSource::default() };
        let volume = Volume { name: VOLUME.to_owned(), projected: Some(projected), ..Volume::default() };
        Some((volume, mount(VOLUME, DIRECTORY)))
    }
}

fn projection(authority: Authority) -> VolumeProjection {
    let Authority { secret: name, file: path, optional } = authority;
    let item = KeyToPath { key: "ca.crt".to_owned(), path, mode: None };
    let secret = SecretProjection { name, items: Some(vec![item]), optional };
    VolumeProjection { secret: Some(secret), ..VolumeProjection::default() }
}
