//! The kubectl command that the output suggests.

use std::env;

use windlass_testenv::control_plane::Facts;

/// The command that calls kubectl: its name if it is on the path, otherwise the file that came with the
/// control plane.
pub(crate) fn kubectl(facts: &Facts) -> String {
    if on_path("kubectl") { "kubectl".to_owned() } else { facts.bin.join("kubectl").display().to_string() }
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}
