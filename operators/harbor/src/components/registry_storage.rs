//! Where a registry's images lie, and what its pods need to get at them.

use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use windlass::PlanError;

use crate::api::driver;
use crate::api::registry_storage::RegistryDriver;
use crate::config::registry::{self as file, GCS_KEY_PATH, STORAGE_DIR, Storage};
use crate::workload::{Sources, Trust, at_field, count, mount, mount_part, secret};

/// The key under which the account of Google's storage is.
const GCS_KEY: &str = "GCS_KEY_DATA";

/// A driver, and the volumes that go with it.
pub(super) struct Stored {
    pub(super) driver: Storage,
    pub(super) volumes: Vec<(Volume, VolumeMount)>,
}

pub(super) fn stored(
    driver: &RegistryDriver,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<Stored, PlanError> {
    let names = driver.names();
    if names.len() != 1 {
        let given = if names.is_empty() { "no store".to_owned() } else { names.join(" and ") };
        return Err(PlanError::new(format!(
            "spec.storage.driver names {given}: give exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory"
        )));
    }
    if let Some(files) = &driver.filesystem {
        let field = "spec.storage.driver.filesystem.volumeSource";
        let volume = files.volume_source.volume("storage").map_err(|error| at_field(field, &error))?;
        let mount = mount_part("storage", STORAGE_DIR, files.prefix.as_deref());
        let driver = Storage::FileSystem(file::FileSystem { max_threads: count(files.max_threads) });
        return Ok(Stored { driver, volumes: vec![(volume, mount)] });
    }
    if let Some(gcs) = &driver.gcs {
        return gcs_stored(gcs, sources);
    }
    let driver = match driver {
        RegistryDriver { s3: Some(s3), .. } => Storage::S3(s3_input(s3, sources, trust)?),
        RegistryDriver { swift: Some(swift), .. } => Storage::Swift(swift_input(swift, sources)?),
        RegistryDriver { azure: Some(azure), .. } => Storage::Azure(azure_input(azure, sources)?),
        RegistryDriver { oss: Some(oss), .. } => Storage::Oss(oss_input(oss, sources)),
        _ => Storage::InMemory,
    };
    Ok(Stored { driver, volumes: Vec::new() })
}

fn s3_input(s3: &driver::S3, sources: &mut Sources<'_>, trust: &mut Trust) -> Result<file::S3, PlanError> {
    let field = |name: &str| format!("spec.storage.driver.s3.{name}");
    let keys = match (&s3.access_key, &s3.secret_key_ref) {
        (Some(access), Some(secret)) => Some(file::S3Keys {
            access: access.clone(),
            secret: sources.value(&field("secretkeyRef"), secret, "secret"),
        }),
        (None, None) => None,
        (Some(_), None) => return Err(lacking(&field("secretkeyRef"), "accesskey")),
        (None, Some(_)) => return Err(lacking(&field("accesskey"), "secretkeyRef")),
    };
    if let Some(secret) = &s3.certificate_ref {
        trust.add(sources, &field("certificateRef"), secret, "custom-ca-bundle.crt");
    }
    Ok(file::S3 {
        region: s3.region.clone(),
        bucket: s3.bucket.clone(),
        region_endpoint: s3.region_endpoint.clone(),
        root_directory: s3.root_directory.clone(),
        keys,
        encrypt: s3.encrypt,
        key_id: s3.key_id.clone(),
        secure: s3.secure,
        skip_verify: s3.skip_verify,
        v4_auth: s3.v4_auth,
        chunk_size: s3.chunk_size,
        storage_class: Some(s3.storage_class.clone()),
        multipart_copy_chunk_size: s3.multipart_copy_chunk_size,
        multipart_copy_max_concurrency: s3.multipart_copy_max_concurrency,
        multipart_copy_threshold_size: s3.multipart_copy_threshold_size,
    })
}

fn lacking(field: &str, other: &str) -> PlanError {
    PlanError::new(format!(
        "{field} is missing, though {other} is given: give both, or neither to use the rights of the ServiceAccount"
    ))
}

fn swift_input(swift: &driver::Swift, sources: &mut Sources<'_>) -> Result<file::Swift, PlanError> {
    let field = |name: &str| format!("spec.storage.driver.swift.{name}");
    let mut value = |name: &str, secret: &Option<String>| {
        secret.as_ref().map(|secret| sources.value(&field(name), secret, "secret"))
    };
    let auth_version = match &swift.auth_version {
        Some(text) => Some(text.trim_start_matches('v').parse().map_err(|_| {
            PlanError::new(format!("{}: {text:?} is no version: write 1, 2 or 3", field("authversion")))
        })?),
        None => None,
    };
    Ok(file::Swift {
        auth_url: swift.auth_url.clone(),
        username: swift.username.clone(),
        password: value("passwordRef", &swift.password_ref),
        container: swift.container.clone(),
        prefix: swift.prefix.clone(),
        region: swift.region.clone(),
        tenant: swift.tenant.clone(),
        tenant_id: swift.tenant_id.clone(),
        domain: swift.domain.clone(),
        domain_id: swift.domain_id.clone(),
        trust_id: swift.trust_id.clone(),
        access_key: swift.access_key.clone(),
        secret_key: value("secretkeyRef", &swift.secret_key_ref),
        auth_version,
        endpoint_type: Some(swift.endpoint_type.to_string()),
        insecure_skip_verify: swift.insecure_skip_verify,
        chunk_size: swift.chunk_size,
    })
}

fn azure_input(azure: &driver::Azure, sources: &mut Sources<'_>) -> Result<file::Azure, PlanError> {
    let field = |name: &str| format!("spec.storage.driver.azure.{name}");
    let given = |name: &str, value: &Option<String>| {
        value.clone().ok_or_else(|| PlanError::new(format!("{} is missing: name it", field(name))))
    };
    let key = given("accountkeyRef", &azure.account_key_ref)?;
    Ok(file::Azure {
        account_name: given("accountname", &azure.account_name)?,
        account_key: sources.value(&field("accountkeyRef"), &key, "secret"),
        container: given("container", &azure.container)?,
        realm: azure.base_url.clone(),
    })
}

fn oss_input(oss: &driver::Oss, sources: &mut Sources<'_>) -> file::Oss {
    let field = "spec.storage.driver.oss.accessSecretRef";
    file::Oss {
        access_key_id: oss.access_key_id.clone(),
        access_key_secret: sources.value(field, &oss.access_secret_ref, "secret"),
        region: oss.region.clone(),
        bucket: oss.bucket.clone(),
        endpoint: oss.endpoint.clone(),
        root_directory: oss.path_prefix.clone(),
        internal: oss.internal,
        encrypt: oss.encrypt,
        secure: oss.secure,
        chunk_size: oss.chunk_size,
    }
}

fn gcs_stored(gcs: &driver::Gcs, sources: &mut Sources<'_>) -> Result<Stored, PlanError> {
    let Some(bucket) = gcs.bucket.clone() else {
        return Err(PlanError::new("spec.storage.driver.gcs.bucket is missing: name it"));
    };
    let driver = Storage::Gcs(file::Gcs {
        bucket,
        root_directory: gcs.path_prefix.clone(),
        chunk_size: gcs.chunk_size.clone(),
        key_file: gcs.key_data_ref.is_some(),
    });
    let key = gcs.key_data_ref.as_deref();
    let volumes =
        key.map(|name| gcs_key(sources, "spec.storage.driver.gcs.keyDataRef", name)).into_iter().collect();
    Ok(Stored { driver, volumes })
}

/// The key of an account of Google's, as a file.
pub(super) fn gcs_key(sources: &mut Sources<'_>, field: &str, name: &str) -> (Volume, VolumeMount) {
    sources.files(field, name, &[GCS_KEY]);
    let (directory, file) = GCS_KEY_PATH.rsplit_once('/').unwrap_or(("/", GCS_KEY_PATH));
    (secret("gcs-key", name, &[(GCS_KEY, file)]), mount("gcs-key", directory))
}
