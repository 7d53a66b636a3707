//! Volumes of a pod and their mounts.

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, SecretVolumeSource, Volume, VolumeMount,
};

/// Returns a volume with a ConfigMap.
pub(crate) fn config_map(volume: &str, name: &str) -> Volume {
    let source = ConfigMapVolumeSource { name: name.to_owned(), ..ConfigMapVolumeSource::default() };
    Volume { name: volume.to_owned(), config_map: Some(source), ..Volume::default() }
}

/// Returns a volume with some keys of a Secret, each with its file name; without keys, all of them under
/// their own names.
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

/// Returns a volume with optional keys of a Secret.
pub(crate) fn secret_if_there(volume: &str, name: &str, keys: &[(&str, &str)]) -> Volume {
    let mut volume = secret(volume, name, keys);
    if let Some(source) = &mut volume.secret {
        source.optional = Some(true);
    }
    volume
}

/// Returns an empty directory.
pub(crate) fn empty(volume: &str) -> Volume {
    let source = EmptyDirVolumeSource::default();
    Volume { name: volume.to_owned(), empty_dir: Some(source), ..Volume::default() }
}

/// Mounts a whole volume at a path.
pub(crate) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

/// Mounts a file or directory of a volume at a path. A mounted file is not updated with the volume: use it
/// only where a change replaces the pods.
pub(crate) fn mount_part(volume: &str, path: &str, part: Option<&str>) -> VolumeMount {
    let part = part.map(|part| part.trim_matches('/')).filter(|part| !part.is_empty());
    VolumeMount { sub_path: part.map(str::to_owned), ..mount(volume, path) }
}

/// Returns `None` for an empty list, which the API server would remove.
pub(super) fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}
