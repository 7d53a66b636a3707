//! The manifests.
