//! Tests of the director style without a cluster.

mod asking;
mod observing;
mod toy;
