//! Volumes of a pod, and their mounts.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};

/// A volume of a ConfigMap.
pub(crate) fn config_map(volume: &str, name: &str) -> Volume {
    let source = ConfigMapVolumeSource { name: name.to_owned(), ..ConfigMapVolumeSource::default() };
    Volume { name: volume.to_owned(), config_map: Some(source), ..Volume::default() }
}

/// A volume of some keys of a Secret, each under a file name; all keys under their own if none are given.
pub(crate) fn secret(volume: &str, name: &str, keys: &[(&str, &str)]) -> Volume {
    let item = |(key, path): &(&str, &str)| KeyToPath {
        key: (*key).to_owned(),
        path: (*path).to_owned(),
        mode: None,
    };
    let source = SecretVolumeSource {
        secret_name: Some(name.to_owned()),
        items: some(keys.iter().map(item).collect()),
        ..SecretVolumeSource::default()
    };
    Volume { name: volume.to_owned(), secret: Some(source), ..Volume::default() }
}

/// The same, of keys that need not be there.
pub(crate) fn secret_if_there(volume: &str, name: &str, keys: &[(&str, &str)]) -> Volume {
    let mut volume = secret(volume, name, keys);
    if let Some(source) = &mut volume.secret {
        source.optional = Some(true);
    }
    volume
}

/// An empty directory.
pub(crate) fn empty(volume: &str) -> Volume {
    let source = EmptyDirVolumeSource::default();
    Volume { name: volume.to_owned(), empty_dir: Some(source), ..Volume::default() }
}

/// A whole volume at a path.
pub(crate) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

/// A file or directory of a volume at a path. A file does not change with the volume: only for what replaces pods when it does.
pub(crate) fn mount_part(volume: &str, path: &str, part: Option<&str>) -> VolumeMount {
    let part = part.map(|part| part.trim_matches('/')).filter(|part| !part.is_empty());
    VolumeMount { sub_path: part.map(str::to_owned), ..mount(volume, path) }
}

/// `None` for an empty list, which the API server leaves out.
pub(super) fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}
