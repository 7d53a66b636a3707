//! Where charts lie, and what ChartMuseum's pods need to get at them.

use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use windlass::PlanError;

use crate::api::chartmuseum_storage::ChartStorage as Given;
use crate::config::chartmuseum::{ChartStorage, Identity, STORAGE_DIR};
use crate::workload::{Sources, at_field, mount_part};

use super::registry_storage::gcs_key;

/// A storage, and the volumes that go with it.
pub(super) struct Stored {
    pub(super) storage: ChartStorage,
    pub(super) volumes: Vec<(Volume, VolumeMount)>,
}

pub(super) fn stored(given: &Given, sources: &mut Sources<'_>) -> Result<Stored, PlanError> {
    let field = |name: &str| format!("spec.chart.storage.{name}");
    let mut volumes = Vec::new();
    let storage = if let Some(files) = &given.filesystem {
        let field = field("filesystem.volumeSource");
        let volume = files.volume_source.volume("storage").map_err(|error| at_field(&field, &error))?;
        volumes.push((volume, mount_part("storage", STORAGE_DIR, files.prefix.as_deref())));
        ChartStorage::FileSystem { prefix: files.prefix.clone() }
    } else if let Some(amazon) = &given.amazon {
        let key = amazon.access_secret_ref.as_ref();
        ChartStorage::Amazon {
            bucket: amazon.bucket.clone(),
            prefix: amazon.prefix.clone(),
            region: amazon.region.clone(),
            endpoint: amazon.endpoint.clone(),
            server_side_encryption: amazon.server_side_encryption.clone(),
            access_key_id: amazon.access_key_id.clone(),
            secret_key: key.map(|secret| sources.key(&field("amazon.accessSecretRef"), secret, "secret")),
        }
    } else if let Some(azure) = &given.azure {
        let needed = |name: &str, value: &Option<String>| {
            let said = || PlanError::new(format!("{} is missing: name it", field(&format!("azure.{name}"))));
            value.clone().ok_or_else(said)
        };
        let key = needed("accountkeyRef", &azure.account_key_ref)?;
        ChartStorage::Azure {
            container: needed("container", &azure.container)?,
            prefix: Some(azure.path_prefix.clone()),
            account_name: needed("accountname", &azure.account_name)?,
            account_key: sources.key(&field("azure.accountkeyRef"), &key, "secret"),
            base_url: Some(azure.base_url.clone()),
        }
    } else if let Some(gcs) = &given.gcs {
        volumes.push(gcs_key(sources, &field("gcs.keyDataSecretRef"), &gcs.key_data_secret_ref));
        ChartStorage::Gcs { bucket: gcs.bucket.clone(), prefix: gcs.path_prefix.clone(), key_file: true }
    } else if let Some(swift) = &given.openstack {
        let identity = |name: &Option<String>, id: &Option<String>| {
            name.clone().map(Identity::Name).or_else(|| id.clone().map(Identity::Id))
        };
        let password = swift.password_ref.as_ref();
        ChartStorage::OpenStack {
            container: swift.container.clone(),
            prefix: swift.prefix.clone(),
            region: swift.region.clone(),
            auth_url: swift.authentication_url.clone(),
            user: identity(&swift.username, &swift.user_id),
            password: password.map(|secret| sources.key(&field("openstack.passwordRef"), secret, "secret")),
            tenant: identity(&swift.tenant, &swift.tenant_id),
            domain: identity(&swift.domain, &swift.domain_id),
        }
    } else if let Some(oss) = &given.oss {
        ChartStorage::Oss {
            bucket: oss.bucket.clone(),
            prefix: oss.path_prefix.clone(),
            endpoint: oss.endpoint.clone(),
            access_key_id: oss.access_key_id.clone(),
            secret_key: sources.key(&field("oss.accessSecretRef"), &oss.access_secret_ref, "secret"),
        }
    } else {
        return Err(PlanError::new(
            "spec.chart.storage names no store: give one of amazon, azure, filesystem, gcs, openstack, oss",
        ));
    };
    Ok(Stored { storage, volumes })
}
