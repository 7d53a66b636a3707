//! The Registry and the RegistryController of a Harbor.

use crate::api::driver::Store;
use crate::api::embedded::Embedded;
use crate::api::redis::database;
use crate::api::registry::{
    RegistryAuthentication, RegistryDebug, RegistryHtPasswd, RegistryHttp, RegistryMiddlewares,
    RegistryPrometheus, RegistryRedis, RegistryValidation,
};
use crate::api::registry_log::RegistryLog;
use crate::api::registry_storage::{
    BlobDescriptorCache, RegistryCache, RegistryDelete, RegistryDriver, RegistryFileSystem,
    RegistryMaintenance, RegistryStorage, UploadPurging,
};
use crate::api::registryctl::{RegistryControllerAuthentication, RegistryControllerLog};
use crate::api::{Registry, RegistryController, RegistryControllerSpec, RegistrySpec};
use crate::catalogue::Component;

use super::Wiring;
use crate::harbor::credentials::Credential;

/// The realm sent in the `WWW-Authenticate` challenge.
const REALM: &str = "harbor-registry-basic-realm";

impl Wiring<'_> {
    /// Returns the Registry.
    pub(crate) fn registry(&self) -> Registry {
        let common = self.common();
        let registry = common.registry.clone().unwrap_or_default();
        let metrics = registry.metrics.as_ref().filter(|metrics| metrics.enabled);
        let debug = metrics.map(|metrics| RegistryDebug {
            port: metrics.port,
            prometheus: Some(RegistryPrometheus { enabled: true, path: metrics.path.clone() }),
        });
        let passwords = RegistryHtPasswd {
            realm: REALM.to_owned(),
            secret_ref: self.credential(Credential::RegistryBasicAuth),
        };
        let middlewares = Some(&registry.storage_middlewares).filter(|all| !all.is_empty());
        let spec = RegistrySpec {
            component: self.component(Some(&registry.component), Component::Registry),
            certificate_refs: registry.certificate_refs.clone(),
            reporting: std::collections::BTreeMap::new(),
            update_strategy_type: common.update_strategy_type.clone(),
            authentication: Some(RegistryAuthentication {
                ht_passwd: Some(passwords),
                ..RegistryAuthentication::default()
            }),
            compatibility: None,
            health: None,
            http: Some(RegistryHttp {
                relative_urls: registry.relative_urls,
                secret_ref: Some(self.credential(Credential::RegistryHttp)),
                debug,
                tls: self.tls(Component::Registry),
                ..RegistryHttp::default()
            }),
            log: RegistryLog { level: common.log_level.registry(), ..RegistryLog::default() },
            middlewares: middlewares.map(|storage| RegistryMiddlewares {
                storage: storage.clone(),
                ..RegistryMiddlewares::default()
            }),
            network: common.network.clone(),
            notifications: None,
            proxy: common.proxy_of("registry").cloned(),
            redis: Some(RegistryRedis {
                connection: self.redis(database::REGISTRY),
                dial_timeout: None,
                read_timeout: None,
                write_timeout: None,
                pool: None,
            }),
            storage: self.images(),
            trace: common.trace.clone(),
            // Core validates manifests itself.
            validation: Some(RegistryValidation { disabled: Some(true), manifests: None }),
        };
        Registry { metadata: self.metadata(), spec, status: None }
    }

    fn images(&self) -> RegistryStorage {
        let purging = UploadPurging { enabled: true, ..UploadPurging::default() };
        let storage = self.harbor.spec.image_chart_storage.as_ref();
        RegistryStorage {
            cache: Some(RegistryCache { blob_descriptor: Some(BlobDescriptorCache::Redis) }),
            delete: Some(RegistryDelete { enabled: true }),
            driver: driver(self.store),
            maintenance: Some(RegistryMaintenance { read_only: None, upload_purging: Some(purging) }),
            redirect: storage.and_then(|storage| storage.redirect.clone()),
        }
    }

    /// Returns the RegistryController.
    pub(crate) fn registry_controller(&self) -> RegistryController {
        let common = self.common();
        let spec = common.registryctl.as_ref().map(|controller| &controller.component);
        let mut component = self.component(spec, Component::RegistryController);
        // Both write to one volume, which may be limited to one node.
        if let (Store::FileSystem(_), Some(registry)) = (self.store, &common.registry) {
            if component.node_selector.is_empty() {
                component.node_selector.clone_from(&registry.component.node_selector);
            }
            if component.tolerations.is_empty() {
                component.tolerations.clone_from(&registry.component.tolerations);
            }
        }
        let spec = RegistryControllerSpec {
            component,
            registry_ref: self.names.base().to_owned(),
            authentication: RegistryControllerAuthentication {
                core_secret_ref: Some(self.credential(Credential::CoreSecret)),
                job_service_secret_ref: Some(self.credential(Credential::JobServiceSecret)),
            },
            log: Some(RegistryControllerLog { level: common.log_level }),
            network: common.network.clone(),
            tls: self.tls(Component::RegistryController),
        };
        RegistryController { metadata: self.metadata(), spec, status: None }
    }
}

/// Returns the storage driver. Its settings decide under which paths images are found: nothing may be added
/// for existing installations.
fn driver(store: Store<'_>) -> RegistryDriver {
    let none = RegistryDriver::default();
    match store {
        Store::FileSystem(files) => {
            let volume = &files.registry_persistent_volume;
            let filesystem = RegistryFileSystem {
                volume_source: Embedded::claim(&volume.claim.source()),
                prefix: volume.claim.prefix.clone(),
                max_threads: volume.max_threads,
            };
            RegistryDriver { filesystem: Some(filesystem), ..none }
        }
        Store::S3(s3) => RegistryDriver { s3: Some(s3.clone()), ..none },
        Store::Swift(swift) => RegistryDriver { swift: Some(swift.clone()), ..none },
        Store::Azure(azure) => RegistryDriver { azure: Some(azure.clone()), ..none },
        Store::Gcs(gcs) => RegistryDriver { gcs: Some(gcs.clone()), ..none },
        Store::Oss(oss) => RegistryDriver { oss: Some(oss.clone()), ..none },
    }
}
