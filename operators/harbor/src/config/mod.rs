//! The files that Harbor reads, rendered.
