//! The ChartMuseum of a Harbor.

use crate::api::ChartMuseum;
use crate::api::chartmuseum::{
    ChartIndex, ChartMuseumAuthentication, ChartMuseumCache, ChartMuseumLog, ChartMuseumServer,
    ChartMuseumSpec, ChartRepo, Charts,
};
use crate::api::chartmuseum_storage::{
    ChartAmazon, ChartFileSystem, ChartGcs, ChartOpenStack, ChartOss, ChartStorage,
};
use crate::api::driver::Store;
use crate::api::embedded::Embedded;
use crate::api::log::LogLevel;
use crate::api::redis::database;
use crate::catalogue::Component;

use super::Wiring;
use crate::harbor::credentials::Credential;

impl Wiring<'_> {
    /// Returns the ChartMuseum.
    pub(crate) fn chart_museum(&self) -> ChartMuseum {
        let common = self.common();
        let charts = common.chartmuseum.clone().unwrap_or_default();
        let spec = ChartMuseumSpec {
            component: self.component(Some(&charts.component), Component::ChartMuseum),
            certificate_refs: charts.certificate_refs.clone(),
            authentication: Some(ChartMuseumAuthentication {
                anonymous_get: false,
                basic_auth_ref: Some(self.credential(Credential::CoreSecret)),
                bearer: None,
            }),
            cache: Some(ChartMuseumCache { redis: Some(self.redis(database::CHART_MUSEUM)) }),
            chart: Charts {
                allow_overwrite: true,
                only_semver2: false,
                url: charts.absolute_url.then(|| common.external_url.clone()),
                index: Some(ChartIndex { parallel_limit: Some(0), storage_timestamp_tolerance: None }),
                post_form_field_name: None,
                repo: Some(ChartRepo::default()),
                storage: storage(self.store),
            },
            disable: None,
            log: Some(ChartMuseumLog {
                debug: common.log_level == LogLevel::Debug,
                json: true,
                ..ChartMuseumLog::default()
            }),
            network: common.network.clone(),
            server: Some(ChartMuseumServer {
                tls: self.tls(Component::ChartMuseum),
                ..ChartMuseumServer::default()
            }),
        };
        ChartMuseum { metadata: self.metadata(), spec, status: None }
    }
}

/// Returns the storage of charts. Its settings decide under which paths charts are found: nothing may be
/// added for existing installations.
fn storage(store: Store<'_>) -> ChartStorage {
    let none = ChartStorage { max_storage_object: Some(0), ..ChartStorage::default() };
    match store {
        Store::FileSystem(files) => {
            let (source, prefix) = match &files.chart_persistent_volume {
                Some(claim) => (claim.source(), claim.prefix.clone()),
                // Charts that share the claim of images are at the root of the claim, whatever the path of
                // the images is.
                None => (files.registry_persistent_volume.claim.source(), None),
            };
            let filesystem = ChartFileSystem { volume_source: Embedded::claim(&source), prefix };
            ChartStorage { filesystem: Some(filesystem), ..none }
        }
        Store::S3(s3) => {
            let amazon = ChartAmazon {
                access_key_id: s3.access_key.clone(),
                access_secret_ref: s3.secret_key_ref.clone(),
                bucket: s3.bucket.clone(),
                endpoint: s3.region_endpoint.clone(),
                prefix: s3.root_directory.clone(),
                region: Some(s3.region.clone()),
                server_side_encryption: None,
            };
            ChartStorage { amazon: Some(amazon), ..none }
        }
        Store::Swift(swift) => {
            let openstack = ChartOpenStack {
                authentication_url: swift.auth_url.clone(),
                container: swift.container.clone(),
                prefix: swift.prefix.clone(),
                region: swift.region.clone(),
                tenant: swift.tenant.clone(),
                tenant_id: swift.tenant_id.clone(),
                domain: swift.domain.clone(),
                domain_id: swift.domain_id.clone(),
                username: swift.username.clone(),
                user_id: None,
                password_ref: swift.password_ref.clone(),
            };
            ChartStorage { openstack: Some(openstack), ..none }
        }
        Store::Azure(azure) => ChartStorage { azure: Some(azure.clone()), ..none },
        Store::Gcs(gcs) => {
            let gcs = ChartGcs {
                bucket: gcs.bucket.clone().unwrap_or_default(),
                key_data_secret_ref: gcs.key_data_ref.clone().unwrap_or_default(),
                path_prefix: gcs.path_prefix.clone(),
                chunk_size: gcs.chunk_size.clone(),
            };
            ChartStorage { gcs: Some(gcs), ..none }
        }
        Store::Oss(oss) => {
            let oss = ChartOss {
                access_key_id: oss.access_key_id.clone(),
                access_secret_ref: oss.access_secret_ref.clone(),
                bucket: oss.bucket.clone(),
                endpoint: oss.endpoint.clone().unwrap_or_else(|| format!("{}.aliyuncs.com", oss.region)),
                path_prefix: oss.path_prefix.clone(),
            };
            ChartStorage { oss: Some(oss), ..none }
        }
    }
}
