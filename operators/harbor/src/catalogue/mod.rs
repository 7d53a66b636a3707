//! What each release of Harbor is made of.
