//! The Go module that the control plane is built from, carried inside this crate,
//! so that an installed program can build it too.

use std::fs;
use std::path::Path;

use crate::digest;
use crate::error::{Error, Result};

macro_rules! module_files {
    ($($path:literal),* $(,)?) => {
        /// Path in the module, and content.
        pub(crate) const FILES: &[(&str, &str)] = &[
            $(($path, include_str!(concat!("../../controlplane/", $path)))),*
        ];
    };
}

module_files![
    "cmd/supervise/main.go",
    "go.mod",
    "go.sum",
    "main.go",
    "supervise/api.go",
    "supervise/audit.yaml",
    "supervise/bringup.go",
    "supervise/certs.go",
    "supervise/directory.go",
    "supervise/frozen.go",
    "supervise/plane.go",
    "supervise/ports.go",
    "supervise/stages.go",
    "supervise/supervise.go",
    "supervise/user_server.go",
];

/// A name for exactly these files: another content is another build.
pub(crate) fn id() -> String {
    digest::short(FILES.iter().flat_map(|(path, content)| [path.as_bytes(), content.as_bytes()]), 8)
}

/// The Kubernetes version that the module pins, such as `v1.36.4`.
pub(crate) fn kubernetes_version() -> &'static str {
    required("k8s.io/kubernetes").unwrap_or("unknown")
}

/// The oldest Go that builds it, such as `1.26.0`.
pub(crate) fn go_version() -> &'static str {
    go_mod().lines().find_map(|line| line.strip_prefix("go ")).unwrap_or("1.26").trim()
}

fn required(module: &str) -> Option<&'static str> {
    go_mod().lines().find_map(|line| line.trim().strip_prefix(module)?.split_whitespace().next())
}

fn go_mod() -> &'static str {
    FILES.iter().find(|(path, _)| *path == "go.mod").map_or("", |(_, content)| content)
}

/// Writes the module's files below `dir`.
pub(crate) fn unpack(dir: &Path) -> Result<()> {
    for (path, content) in FILES {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::file(parent))?;
        }
        fs::write(&path, content).map_err(Error::file(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_go_module_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("controlplane");
        let mut found = BTreeSet::new();
        let mut dirs = vec![root.clone()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    found.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let carried: BTreeSet<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(carried, found);
    }

    #[test]
    fn versions_are_read_from_the_module() {
        assert!(kubernetes_version().starts_with("v1."), "{}", kubernetes_version());
        assert!(go_version().starts_with("1."), "{}", go_version());
    }

    #[test]
    fn the_id_of_a_build_names_its_directory() {
        assert_eq!(id().len(), 16);
        assert!(id().chars().all(|c| c.is_ascii_hexdigit()));
    }
}
