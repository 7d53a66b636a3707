//! The storage of ChartMuseum, with the volumes of its pods.

use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use windlass::PlanError;

use crate::api::chartmuseum_storage::{
    ChartAmazon, ChartGcs, ChartOpenStack, ChartOss, ChartStorage as StorageSettings,
};
use crate::api::driver::Azure;
use crate::config::SecretKey;
use crate::config::chartmuseum::{ChartStorage, GCS_KEY_PATH, STORAGE_DIR};
use crate::workload::{Sources, at_field, mount_part};

use super::registry_storage::{gcs_key, required};

/// A storage with its volumes.
pub(super) struct Stored {
    pub(super) storage: ChartStorage,
    pub(super) volumes: Vec<(Volume, VolumeMount)>,
}

pub(super) fn stored(settings: &StorageSettings, sources: &mut Sources<'_>) -> Result<Stored, PlanError> {
    let field = |name: &str| format!("spec.chart.storage.{name}");
    let mut key = |name: &str, secret: &str| sources.key(&field(name), secret, "secret");
    let mut volumes = Vec::new();
    let storage = if let Some(files) = &settings.filesystem {
        let field = field("filesystem.volumeSource");
        let volume = files.volume_source.volume("storage").map_err(|error| at_field(&field, &error))?;
        volumes.push((volume, mount_part("storage", STORAGE_DIR, files.prefix.as_deref())));
        ChartStorage::files(files.prefix.as_deref())
    } else if let Some(settings) = &settings.amazon {
        let secret = settings.access_secret_ref.as_ref();
        amazon(settings, secret.map(|secret| key("amazon.accessSecretRef", secret)))
    } else if let Some(settings) = &settings.azure {
        let secret = required(&field("azure.accountkeyRef"), settings.account_key_ref.as_ref())?;
        azure(settings, key("azure.accountkeyRef", secret))?
    } else if let Some(settings) = &settings.gcs {
        volumes.push(gcs_key(sources, &field("gcs.keyDataSecretRef"), &settings.key_data_secret_ref));
        gcs(settings)
    } else if let Some(settings) = &settings.openstack {
        let password = settings.password_ref.as_ref();
        openstack(settings, password.map(|secret| key("openstack.passwordRef", secret)))
    } else if let Some(settings) = &settings.oss {
        oss(settings, key("oss.accessSecretRef", &settings.access_secret_ref))
    } else {
        return Err(PlanError::new(
            "spec.chart.storage sets no storage backend: set one of amazon, azure, filesystem, gcs, openstack, oss",
        ));
    };
    Ok(Stored { storage, volumes })
}

/// Returns the settings for Amazon S3 and compatible storage.
pub(crate) fn amazon(amazon: &ChartAmazon, secret_key: Option<SecretKey>) -> ChartStorage {
    ChartStorage::new("amazon")
        .with("STORAGE_AMAZON_BUCKET", &amazon.bucket)
        .below("STORAGE_AMAZON_PREFIX", amazon.prefix.as_deref())
        .with_some("STORAGE_AMAZON_REGION", amazon.region.as_ref())
        .with_some("STORAGE_AMAZON_ENDPOINT", amazon.endpoint.as_ref())
        .with_some("STORAGE_AMAZON_SSE", amazon.server_side_encryption.as_ref())
        .with_some("AWS_ACCESS_KEY_ID", amazon.access_key_id.as_ref())
        .secret("AWS_SECRET_ACCESS_KEY", secret_key)
}

/// Returns the settings for Azure Blob Storage.
pub(crate) fn azure(azure: &Azure, account_key: SecretKey) -> Result<ChartStorage, PlanError> {
    let parameter = |name: &str, value| required(&format!("spec.chart.storage.azure.{name}"), value);
    Ok(ChartStorage::new("microsoft")
        .with("STORAGE_MICROSOFT_CONTAINER", parameter("container", azure.container.as_ref())?)
        .below("STORAGE_MICROSOFT_PREFIX", Some(&azure.path_prefix))
        .with("AZURE_STORAGE_ACCOUNT", parameter("accountname", azure.account_name.as_ref())?)
        .with("AZURE_BASE_URL", &azure.base_url)
        .secret("AZURE_STORAGE_ACCESS_KEY", Some(account_key)))
}

/// Returns the settings for Google Cloud Storage, with a mounted key.
pub(crate) fn gcs(gcs: &ChartGcs) -> ChartStorage {
    ChartStorage::new("google")
        .with("STORAGE_GOOGLE_BUCKET", &gcs.bucket)
        .below("STORAGE_GOOGLE_PREFIX", gcs.path_prefix.as_deref())
        .with("GOOGLE_APPLICATION_CREDENTIALS", GCS_KEY_PATH)
}

/// Returns the settings for OpenStack Swift. User, tenant and domain are set by name, or else by id.
pub(crate) fn openstack(swift: &ChartOpenStack, password: Option<SecretKey>) -> ChartStorage {
    let identities = [
        (&swift.username, "OS_USERNAME", &swift.user_id, "OS_USERID"),
        (&swift.tenant, "OS_TENANT_NAME", &swift.tenant_id, "OS_TENANT_ID"),
        (&swift.domain, "OS_DOMAIN_NAME", &swift.domain_id, "OS_DOMAIN_ID"),
    ];
    let storage = ChartStorage::new("openstack")
        .with("STORAGE_OPENSTACK_CONTAINER", &swift.container)
        .below("STORAGE_OPENSTACK_PREFIX", swift.prefix.as_deref())
        .with_some("STORAGE_OPENSTACK_REGION", swift.region.as_ref())
        .with("OS_AUTH_URL", &swift.authentication_url)
        .secret("OS_PASSWORD", password);
    identities.into_iter().fold(storage, |storage, (name, by_name, id, by_id)| match name {
        Some(name) => storage.with(by_name, name),
        None => storage.with_some(by_id, id.as_ref()),
    })
}

/// Returns the settings for Alibaba OSS.
pub(crate) fn oss(oss: &ChartOss, secret_key: SecretKey) -> ChartStorage {
    ChartStorage::new("alibaba")
        .with("STORAGE_ALIBABA_BUCKET", &oss.bucket)
        .with("STORAGE_ALIBABA_ENDPOINT", &oss.endpoint)
        .below("STORAGE_ALIBABA_PREFIX", oss.path_prefix.as_deref())
        .with("ALIBABA_CLOUD_ACCESS_KEY_ID", &oss.access_key_id)
        .secret("ALIBABA_CLOUD_ACCESS_KEY_SECRET", Some(secret_key))
}
