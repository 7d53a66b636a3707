//! Certificate authorities that a component trusts in addition to those of its image.
//!
//! Harbor's images trust all certificates in one directory when they start. All authorities are mounted there
//! as one volume, because a file that is mounted with `subPath` would never be updated.

use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, SecretProjection, Volume, VolumeMount, VolumeProjection,
};

use super::Sources;
use super::volume::mount;

/// Directory in which Harbor's images look for additional certificate authorities.
const DIRECTORY: &str = "/harbor_cust_cert";
const VOLUME: &str = "trusted-certificates";

/// Certificate authorities, each from the key `ca.crt` of a Secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust(Vec<Authority>);

#[derive(Clone, Debug)]
struct Authority {
    secret: String,
    file: String,
    optional: Option<bool>,
}

impl Trust {
    /// Adds the authority of a Secret under its own file name. The Secret must have the key `ca.crt`.
    pub(crate) fn add(
        &mut self,
        sources: &mut Sources<'_>,
        field: &str,
        secret: &str,
        file: impl Into<String>,
    ) {
        sources.files(field, secret, &["ca.crt"]);
        self.push(secret, file.into(), None);
    }

    /// Adds the authority of a Secret if the Secret has one: a public certificate may have a well-known
    /// authority.
    pub(crate) fn add_if_there(
        &mut self,
        sources: &mut Sources<'_>,
        field: &str,
        secret: &str,
        file: impl Into<String>,
    ) {
        sources.files(field, secret, &[]);
        self.push(secret, file.into(), Some(true));
    }

    /// Adds the authorities that the user lists, as `<secret>.crt`.
    pub(crate) fn add_all(&mut self, sources: &mut Sources<'_>, field: &str, secrets: &[String]) {
        for secret in secrets {
            self.add(sources, field, secret, format!("{secret}.crt"));
        }
    }

    /// Adds each file once, because the API server refuses a volume with two files of the same name: one
    /// Redis may be listed twice, and a Secret may have the same name as a file of another one.
    fn push(&mut self, secret: &str, mut file: String, optional: Option<bool>) {
        while let Some(there) = self.0.iter().find(|there| there.file == file) {
            if there.secret == secret {
                return;
            }
            file = format!("other-{file}");
        }
        self.0.push(Authority { secret: secret.to_owned(), file, optional });
    }

    /// Returns the volume and its mount; `None` if nothing was added.
    pub(crate) fn volume(self) -> Option<(Volume, VolumeMount)> {
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
