//! The kinds of cert-manager that a Harbor may need, or may find of the time before.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a certificate should be; only what we say of one.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Certificate",
    plural = "certificates",
    namespaced,
    doc = "Certificate is a certificate of cert-manager's."
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// Where it is put.
    pub secret_name: String,
    /// Its common name.
    pub common_name: String,
    /// How long it lives.
    pub duration: String,
    /// What it is for.
    pub usages: Vec<String>,
    /// Its key.
    pub private_key: PrivateKey,
    /// Who issues it.
    pub issuer_ref: IssuerReference,
    /// Everything else.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Who issues certificates in a namespace. None is planned: those that the first operator of these kinds made are deleted, once what
/// they issued is ours.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Issuer",
    plural = "issuers",
    namespaced,
    doc = "Issuer is an issuer of cert-manager's."
)]
pub struct IssuerSpec {
    /// Whatever it is.
    #[serde(flatten)]
    pub any: Map<String, Value>,
}

/// How the key of a certificate is made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrivateKey {
    /// The algorithm.
    pub algorithm: String,
    /// The form in which it is written.
    pub encoding: String,
    /// Its size, in bits.
    pub size: i32,
}

/// Who issues a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerReference {
    /// The group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
}
