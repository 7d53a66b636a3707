//! The control plane of a measurement: fresh, private, and without components that are not needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use windlass_testenv::{Component, Mark, Options, PrivateEnv, Requests, TestEnv};

use crate::admin::Admin;

/// A control plane of etcd and API server. Ends when it is dropped.
pub(crate) struct Plane {
    pub(crate) env: PrivateEnv,
    pub(crate) admin: Admin,
    directory: tempfile::TempDir,
}

/// A user with a client certificate.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// The user's name, as the audit log has it.
    pub(crate) name: String,
    pub(crate) kubeconfig: PathBuf,
}

impl Plane {
    /// A fresh one, with the Widgets' kind and their namespaces in it.
    ///
    /// Controller manager, scheduler and KWOK are stopped: nothing here needs them, and what they do is
    /// noise.
    pub(crate) async fn start(root: &Path) -> Result<Self> {
        let env = TestEnv::private(Options::private()).await?;
        for component in [Component::Kwok, Component::Scheduler] {
            env.stop(component).await?;
        }
        let crd = std::fs::read_to_string(root.join("bench/crds/widgets.yaml"))
            .context("bench/crds/widgets.yaml")?;
        let crd: CustomResourceDefinition = serde_saphyr::from_str(&crd)?;
        env.install_crds(&[crd]).await?;
        env.stop(Component::ControllerManager).await?;
        let admin = Admin::new(env.client());
        admin.namespaces().await?;
        Ok(Self { env, admin, directory: tempfile::tempdir()? })
    }

    /// A user of that name, with all rights, by a certificate of the cluster's own authority.
    pub(crate) fn user(&self, name: &str) -> Result<User> {
        let facts = self.env.facts("certificates")?;
        let read = |file: &str| {
            let path = facts.pki.join(file);
            std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        let authority = Issuer::from_ca_cert_pem(&read("ca.crt")?, KeyPair::from_pem(&read("ca.key")?)?)?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &authority)?;
        let file = |extension: &str, content: &str| -> Result<PathBuf> {
            let path = self.directory.path().join(format!("{name}.{extension}"));
            std::fs::write(&path, content)?;
            Ok(path)
        };
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": {
                "server": facts.server, "certificate-authority": facts.pki.join("ca.crt"),
            }}],
            "users": [{"name": name, "user": {
                "client-certificate": file("crt", &certificate.pem())?,
                "client-key": file("key", &key.serialize_pem())?,
            }}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": name}}],
        });
        Ok(User { name: name.to_owned(), kubeconfig: file("kubeconfig", &config.to_string())? })
    }

    /// The directory of the subjects' logs, removed with the control plane.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.log"))
    }

    /// The present end of the audit log.
    pub(crate) fn mark(&self) -> Result<Mark> {
        Ok(self.env.requests()?.mark()?)
    }

    /// The requests of a user since a mark.
    pub(crate) fn asked(&self, user: &User, since: Mark) -> Result<Requests> {
        Ok(self.env.requests()?.since(since)?.by_user(&user.name))
    }

    /// The description of the control plane.
    pub(crate) fn version(&self) -> Result<String> {
        Ok(self.env.facts("a version")?.version.clone())
    }
}

/// Requests by `verb resource/subresource code`, for the raw data.
pub(crate) fn tally(requests: &Requests) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests.iter() {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let what =
            format!("{} {}{slash}{} {}", request.verb, request.resource, request.subresource, request.code);
        *counts.entry(what).or_default() += 1;
    }
    counts
}
