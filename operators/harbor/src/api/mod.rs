//! The kinds of `goharbor.io`: what a user writes.
