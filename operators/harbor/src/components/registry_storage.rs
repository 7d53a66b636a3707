//! The storage of a Registry, with the volumes of its pods.

use k8s_openapi::api::core::v1::{Volume, VolumeMount};
use windlass::PlanError;

use crate::api::driver;
use crate::api::registry_storage::RegistryDriver;
use crate::config::Confidential;
use crate::config::registry::{GCS_KEY_PATH, STORAGE_DIR, Storage};
use crate::workload::{Sources, Trust, at_field, count, mount, mount_part, secret};

/// Key of the Google Cloud service account in the Secret.
const GCS_KEY: &str = "GCS_KEY_DATA";

/// A storage driver with its volumes.
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
        let backends = if names.is_empty() { "no storage backend".to_owned() } else { names.join(" and ") };
        return Err(PlanError::new(format!(
            "spec.storage.driver sets {backends}: set exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory"
        )));
    }
    if let Some(files) = &driver.filesystem {
        let field = "spec.storage.driver.filesystem.volumeSource";
        let volume = files.volume_source.volume("storage").map_err(|error| at_field(field, &error))?;
        let mount = mount_part("storage", STORAGE_DIR, files.prefix.as_deref());
        let driver = Storage::filesystem(count(files.max_threads));
        return Ok(Stored { driver, volumes: vec![(volume, mount)] });
    }
    let field = |name: &str| format!("spec.storage.driver.{}.{name}", names.concat());
    let mut volumes = Vec::new();
    let mut value = |name: &str, secret: &str| sources.value(&field(name), secret, "secret");
    let driver = if let Some(settings) = &driver.s3 {
        match (&settings.access_key, &settings.secret_key_ref) {
            (Some(_), None) => return Err(lacking(&field("secretkeyRef"), "accesskey")),
            (None, Some(_)) => return Err(lacking(&field("accesskey"), "secretkeyRef")),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let key = settings.secret_key_ref.as_ref().map(|secret| value("secretkeyRef", secret));
        if let Some(secret) = &settings.certificate_ref {
            trust.add(sources, &field("certificateRef"), secret, "custom-ca-bundle.crt");
        }
        s3(settings, key)
    } else if let Some(settings) = &driver.swift {
        let password = settings.password_ref.as_ref().map(|secret| value("passwordRef", secret));
        let key = settings.secret_key_ref.as_ref().map(|secret| value("secretkeyRef", secret));
        swift(settings, password, key)?
    } else if let Some(settings) = &driver.azure {
        let key = required(&field("accountkeyRef"), settings.account_key_ref.as_ref())?;
        azure(settings, value("accountkeyRef", key))?
    } else if let Some(settings) = &driver.gcs {
        let driver = gcs(settings)?;
        let key = settings.key_data_ref.as_deref();
        volumes.extend(key.map(|name| gcs_key(sources, &field("keyDataRef"), name)));
        driver
    } else if let Some(settings) = &driver.oss {
        oss(settings, value("accessSecretRef", &settings.access_secret_ref))
    } else {
        Storage::in_memory()
    };
    Ok(Stored { driver, volumes })
}

fn lacking(field: &str, other: &str) -> PlanError {
    PlanError::new(format!(
        "{field} is missing, although {other} is set: set both, or neither to use the identity of the ServiceAccount"
    ))
}

/// Returns the value of a field that the schema does not require but the driver does.
pub(super) fn required<'v>(field: &str, value: Option<&'v String>) -> Result<&'v String, PlanError> {
    value.ok_or_else(|| PlanError::new(format!("{field} is missing: set it")))
}

/// Returns the driver for Amazon S3 and compatible storage. Without an access key, the pod's identity is used
/// (service account or instance profile).
pub(crate) fn s3(s3: &driver::S3, secret_key: Option<Confidential>) -> Storage {
    Storage::new("s3")
        .with("region", &s3.region)
        .with("bucket", &s3.bucket)
        .with_some("regionendpoint", s3.region_endpoint.as_ref())
        .with_some("rootdirectory", s3.root_directory.as_ref())
        .with_some("accesskey", s3.access_key.as_ref())
        .with("encrypt", s3.encrypt)
        .with_some("keyid", s3.key_id.as_ref())
        .with("secure", s3.secure)
        .with("skipverify", s3.skip_verify)
        .with("v4auth", s3.v4_auth)
        .with_some("chunksize", s3.chunk_size)
        .with("storageclass", &s3.storage_class)
        .with_some("multipartcopychunksize", s3.multipart_copy_chunk_size)
        .with_some("multipartcopymaxconcurrency", s3.multipart_copy_max_concurrency)
        .with_some("multipartcopythresholdsize", s3.multipart_copy_threshold_size)
        .secret("secretkey", secret_key)
}

/// Returns the driver for OpenStack Swift.
pub(crate) fn swift(
    swift: &driver::Swift,
    password: Option<Confidential>,
    secret_key: Option<Confidential>,
) -> Result<Storage, PlanError> {
    let wrong = |text: &String| {
        PlanError::new(format!(
            "spec.storage.driver.swift.authversion: {text:?} is not a version: write 1, 2 or 3"
        ))
    };
    let version = |text: &String| text.trim_start_matches('v').parse::<i64>().map_err(|_| wrong(text));
    Ok(Storage::new("swift")
        .with("authurl", &swift.auth_url)
        .with_some("username", swift.username.as_ref())
        .with("container", &swift.container)
        .with_some("prefix", swift.prefix.as_ref())
        .with_some("region", swift.region.as_ref())
        .with_some("tenant", swift.tenant.as_ref())
        .with_some("tenantid", swift.tenant_id.as_ref())
        .with_some("domain", swift.domain.as_ref())
        .with_some("domainid", swift.domain_id.as_ref())
        .with_some("trustid", swift.trust_id.as_ref())
        .with_some("accesskey", swift.access_key.as_ref())
        .with_some("authversion", swift.auth_version.as_ref().map(version).transpose()?)
        .with("endpointtype", swift.endpoint_type.to_string())
        .with("insecureskipverify", swift.insecure_skip_verify)
        .with_some("chunksize", swift.chunk_size)
        .secret("password", password)
        .secret("secretkey", secret_key))
}

/// Returns the driver for Azure Blob Storage. The path prefix applies to charts only: images start at the
/// root of the container.
pub(crate) fn azure(azure: &driver::Azure, account_key: Confidential) -> Result<Storage, PlanError> {
    let parameter = |name: &str, value| required(&format!("spec.storage.driver.azure.{name}"), value);
    Ok(Storage::new("azure")
        .with("accountname", parameter("accountname", azure.account_name.as_ref())?)
        .with("container", parameter("container", azure.container.as_ref())?)
        .with("realm", &azure.base_url)
        .secret("accountkey", Some(account_key)))
}

/// Returns the driver for Google Cloud Storage. Without a key, the pod's identity is used.
pub(crate) fn gcs(gcs: &driver::Gcs) -> Result<Storage, PlanError> {
    Ok(Storage::new("gcs")
        .with("bucket", required("spec.storage.driver.gcs.bucket", gcs.bucket.as_ref())?)
        .with_some("keyfile", gcs.key_data_ref.as_ref().map(|_| GCS_KEY_PATH))
        .with_some("rootdirectory", gcs.path_prefix.as_ref())
        .with_some("chunksize", gcs.chunk_size.as_ref()))
}

/// Returns the driver for Alibaba OSS.
pub(crate) fn oss(oss: &driver::Oss, access_key_secret: Confidential) -> Storage {
    Storage::new("oss")
        .with("accesskeyid", &oss.access_key_id)
        .with("region", &oss.region)
        .with("bucket", &oss.bucket)
        .with_some("endpoint", oss.endpoint.as_ref().map(|host| format!("{}.{host}", oss.bucket)))
        .with("internal", oss.internal)
        .with("encrypt", oss.encrypt)
        .with("secure", oss.secure)
        .with_some("chunksize", oss.chunk_size)
        .with_some("rootdirectory", oss.path_prefix.as_ref())
        .secret("accesskeysecret", Some(access_key_secret))
}

/// Returns the volume with the key of a Google Cloud service account.
pub(super) fn gcs_key(sources: &mut Sources<'_>, field: &str, name: &str) -> (Volume, VolumeMount) {
    sources.files(field, name, &[GCS_KEY]);
    let (directory, file) = GCS_KEY_PATH.rsplit_once('/').unwrap_or(("/", GCS_KEY_PATH));
    (secret("gcs-key", name, &[(GCS_KEY, file)]), mount("gcs-key", directory))
}
