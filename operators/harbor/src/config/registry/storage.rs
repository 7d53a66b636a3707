//! Where the registry's images lie.
//!
//! What stands here decides where bytes are looked for: a change for an installation that exists loses its images.

use windlass_operator::yaml::Map;

use super::super::confidential::Confidential;
use super::{GCS_KEY_PATH, STORAGE_DIR};

/// A driver of the registry's storage.
#[derive(Debug, Clone)]
pub enum Storage {
    /// Files, in a volume mounted at [`STORAGE_DIR`].
    FileSystem(FileSystem),
    /// Amazon's S3, and whoever speaks like it.
    S3(S3),
    /// OpenStack's Swift.
    Swift(Swift),
    /// Microsoft's Azure.
    Azure(Azure),
    /// Google's Cloud Storage.
    Gcs(Gcs),
    /// Alibaba's OSS.
    Oss(Oss),
    /// The process: for tests.
    InMemory,
}

/// Files.
#[derive(Debug, Clone)]
pub struct FileSystem {
    /// How many files are open at a time.
    pub max_threads: u32,
}

/// S3.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub struct S3 {
    /// The region.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// Another server than Amazon's.
    pub region_endpoint: Option<String>,
    /// The path in the bucket.
    pub root_directory: Option<String>,
    /// The keys. Without, the pod's own identity is used: by service account or by instance.
    pub keys: Option<S3Keys>,
    /// Whether objects are encrypted by the server.
    pub encrypt: bool,
    /// The key they are encrypted with.
    pub key_id: Option<String>,
    /// Whether TLS is used.
    pub secure: bool,
    /// Whether any certificate is accepted.
    pub skip_verify: bool,
    /// Whether requests are signed in the fourth way.
    pub v4_auth: bool,
    /// The size of a part.
    pub chunk_size: Option<i64>,
    /// `STANDARD`, `REDUCED_REDUNDANCY`, …
    pub storage_class: Option<String>,
    /// The size of a part when copying.
    pub multipart_copy_chunk_size: Option<i64>,
    /// How many parts are copied at a time.
    pub multipart_copy_max_concurrency: Option<i64>,
    /// The size from which on copying is done in parts.
    pub multipart_copy_threshold_size: Option<i64>,
}

/// The keys of S3.
#[derive(Debug, Clone)]
pub struct S3Keys {
    /// The name of the key.
    pub access: String,
    /// The key.
    pub secret: Confidential,
}

/// Swift.
#[derive(Debug, Clone, Default)]
pub struct Swift {
    /// Where to authenticate.
    pub auth_url: String,
    /// The user.
    pub username: Option<String>,
    /// The user's password.
    pub password: Option<Confidential>,
    /// The container.
    pub container: String,
    /// The path in the container.
    pub prefix: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The tenant, by name.
    pub tenant: Option<String>,
    /// The tenant, by number.
    pub tenant_id: Option<String>,
    /// The domain, by name.
    pub domain: Option<String>,
    /// The domain, by number.
    pub domain_id: Option<String>,
    /// A trust.
    pub trust_id: Option<String>,
    /// The name of the key for temporary URLs.
    pub access_key: Option<String>,
    /// The key for temporary URLs.
    pub secret_key: Option<Confidential>,
    /// The version of authentication.
    pub auth_version: Option<i64>,
    /// `public`, `internal` or `admin`.
    pub endpoint_type: Option<String>,
    /// Whether any certificate is accepted.
    pub insecure_skip_verify: bool,
    /// The size of a part.
    pub chunk_size: Option<i64>,
}

/// Azure. Its path prefix is for charts alone: the registry's images begin at the container's root.
#[derive(Debug, Clone)]
pub struct Azure {
    /// The account.
    pub account_name: String,
    /// The account's key.
    pub account_key: Confidential,
    /// The container.
    pub container: String,
    /// `core.windows.net`, or that of another cloud.
    pub realm: String,
}

/// Google's storage.
#[derive(Debug, Clone, Default)]
pub struct Gcs {
    /// The bucket.
    pub bucket: String,
    /// The path in the bucket.
    pub root_directory: Option<String>,
    /// The size of a part.
    pub chunk_size: Option<String>,
    /// Whether a key is mounted at [`GCS_KEY_PATH`]. Without, the pod's own identity is used.
    pub key_file: bool,
}

/// OSS.
#[derive(Debug, Clone)]
pub struct Oss {
    /// The name of the key.
    pub access_key_id: String,
    /// The key.
    pub access_key_secret: Confidential,
    /// The region: `oss-…`.
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// The server, without the bucket.
    pub endpoint: Option<String>,
    /// The path in the bucket.
    pub root_directory: Option<String>,
    /// Whether the address within Alibaba's network is used.
    pub internal: bool,
    /// Whether objects are encrypted by the server.
    pub encrypt: bool,
    /// Whether TLS is used.
    pub secure: bool,
    /// The size of a part.
    pub chunk_size: Option<i64>,
}

impl Storage {
    /// What core calls it, and the key in the file.
    pub const fn provider(&self) -> &'static str {
        match self {
            Self::FileSystem(_) => "filesystem",
            Self::S3(_) => "s3",
            Self::Swift(_) => "swift",
            Self::Azure(_) => "azure",
            Self::Gcs(_) => "gcs",
            Self::Oss(_) => "oss",
            Self::InMemory => "inmemory",
        }
    }

    /// The secrets of the driver, by the variable that the registry reads them from.
    pub(super) fn secrets(&self) -> Vec<(&'static str, &Confidential)> {
        match self {
            Self::FileSystem(_) | Self::Gcs(_) | Self::InMemory => Vec::new(),
            Self::S3(s3) => {
                s3.keys.iter().map(|keys| ("REGISTRY_STORAGE_S3_SECRETKEY", &keys.secret)).collect()
            }
            Self::Swift(swift) => [
                ("REGISTRY_STORAGE_SWIFT_PASSWORD", swift.password.as_ref()),
                ("REGISTRY_STORAGE_SWIFT_SECRETKEY", swift.secret_key.as_ref()),
            ]
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect(),
            Self::Azure(azure) => vec![("REGISTRY_STORAGE_AZURE_ACCOUNTKEY", &azure.account_key)],
            Self::Oss(oss) => vec![("REGISTRY_STORAGE_OSS_ACCESSKEYSECRET", &oss.access_key_secret)],
        }
    }

    /// The driver's part of the file.
    pub(super) fn section(&self) -> Map {
        match self {
            Self::FileSystem(files) => {
                Map::new().with("rootdirectory", STORAGE_DIR).with("maxthreads", files.max_threads)
            }
            Self::S3(s3) => s3_section(s3),
            Self::Swift(swift) => swift_section(swift),
            Self::Azure(azure) => Map::new()
                .with("accountname", &azure.account_name)
                .with("container", &azure.container)
                .with("realm", &azure.realm),
            Self::Gcs(gcs) => Map::new()
                .with("bucket", &gcs.bucket)
                .with_some("keyfile", gcs.key_file.then_some(GCS_KEY_PATH))
                .with_some("rootdirectory", gcs.root_directory.as_ref())
                .with_some("chunksize", gcs.chunk_size.as_ref()),
            Self::Oss(oss) => Map::new()
                .with("accesskeyid", &oss.access_key_id)
                .with("region", &oss.region)
                .with("bucket", &oss.bucket)
                .with_some("endpoint", oss.endpoint.as_ref().map(|host| format!("{}.{host}", oss.bucket)))
                .with("internal", oss.internal)
                .with("encrypt", oss.encrypt)
                .with("secure", oss.secure)
                .with_some("chunksize", oss.chunk_size)
                .with_some("rootdirectory", oss.root_directory.as_ref()),
            Self::InMemory => Map::new(),
        }
    }
}

fn s3_section(s3: &S3) -> Map {
    Map::new()
        .with("region", &s3.region)
        .with("bucket", &s3.bucket)
        .with_some("regionendpoint", s3.region_endpoint.as_ref())
        .with_some("rootdirectory", s3.root_directory.as_ref())
        .with_some("accesskey", s3.keys.as_ref().map(|keys| &keys.access))
        .with("encrypt", s3.encrypt)
        .with_some("keyid", s3.key_id.as_ref())
        .with("secure", s3.secure)
        .with("skipverify", s3.skip_verify)
        .with("v4auth", s3.v4_auth)
        .with_some("chunksize", s3.chunk_size)
        .with_some("storageclass", s3.storage_class.as_ref())
        .with_some("multipartcopychunksize", s3.multipart_copy_chunk_size)
        .with_some("multipartcopymaxconcurrency", s3.multipart_copy_max_concurrency)
        .with_some("multipartcopythresholdsize", s3.multipart_copy_threshold_size)
}

fn swift_section(swift: &Swift) -> Map {
    Map::new()
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
        .with_some("authversion", swift.auth_version)
        .with_some("endpointtype", swift.endpoint_type.as_ref())
        .with("insecureskipverify", swift.insecure_skip_verify)
        .with_some("chunksize", swift.chunk_size)
}
