//! A real local Kubernetes control plane for tests, demos and benchmarks.

pub mod proxy;
