//! The kinds of cert-manager that a Harbor uses, or that the upstream operator has created.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Spec of a Certificate, with the fields that this operator sets.
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
    /// The Secret that cert-manager writes.
    pub secret_name: String,
    /// The common name.
    pub common_name: String,
    /// The lifetime, as a Go duration.
    pub duration: String,
    /// The key usages.
    pub usages: Vec<String>,
    /// The private key settings.
    pub private_key: PrivateKey,
    /// The issuer of the certificate.
    pub issuer_ref: IssuerReference,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Spec of an Issuer. This operator creates none; those of the upstream operator are deleted once their
/// certificates are taken over.
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
    /// All fields, without a schema.
    #[serde(flatten)]
    pub any: Map<String, Value>,
}

/// Private key settings of a Certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrivateKey {
    /// The key algorithm.
    pub algorithm: String,
    /// The encoding of the key.
    pub encoding: String,
    /// The size of the key in bits.
    pub size: i32,
}

/// Reference to the issuer of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerReference {
    /// API group of the issuer.
    pub group: String,
    /// Kind of the issuer.
    pub kind: String,
    /// Name of the issuer.
    pub name: String,
}
