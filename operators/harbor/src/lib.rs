//! Runs Harbor on Kubernetes.
//!
//! Read [`api`] first (what a user writes), then [`catalogue`] (what each release of Harbor is made of) and [`config`] (the files it reads).

pub mod api;
pub mod catalogue;
pub mod config;
pub mod settings;
