//! The Core of a Harbor.

use crate::api::component::Served;
use crate::api::core_kind::{
    AuthMode, ChartCacheDriver, Core, CoreChartRepository, CoreComponents, CoreJobService, CoreLog,
    CoreNotaryServer, CorePortal, CoreRegistry, CoreSpec, CoreTokenService, CoreTrivy,
};
use crate::api::harbor_components::HarborCore;
use crate::api::postgres::{CoreDatabase, Database};
use crate::api::redis::{RedisWithIdleTimeout, database};
use crate::catalogue::Component;

use super::Wiring;
use crate::harbor::credentials::Credential;

impl Wiring<'_> {
    /// Returns the Core.
    pub(crate) fn core(&self) -> Core {
        let common = self.common();
        let core: HarborCore = common.core.clone().unwrap_or_default();
        let spec = CoreSpec {
            component: self.component(Some(&core.component), Component::Core),
            certificate_refs: core.certificate_refs.clone(),
            admin_initial_password_ref: self.admin_password(),
            auth_mode: AuthMode::Database,
            config_expiration: "5s".into(),
            csrf_key_ref: self.credential(Credential::Csrf),
            external_endpoint: common.external_url.clone(),
            public_certificate_ref: self.public_certificate(),
            secret_ref: self.credential(Credential::CoreSecret),
            components: self.neighbours(),
            database: self.core_database(&core),
            cache_layer: core.cache_layer,
            http: None,
            log: Some(CoreLog { level: common.log_level.core() }),
            metrics: core.metrics.clone(),
            network: common.network.clone(),
            proxy: common.proxy_of("core").cloned(),
            redis: RedisWithIdleTimeout {
                connection: self.redis(database::CORE),
                idle_timeout: "30s".into(),
            },
            trace: common.trace.clone(),
        };
        Core { metadata: self.metadata_behind_ingress(), spec, status: None }
    }

    /// Returns Core's database, which the exporter reads too.
    pub(super) fn core_database(&self, core: &HarborCore) -> CoreDatabase {
        CoreDatabase {
            connection: self.database.connection(Database::Core),
            encryption_key_ref: self.credential(Credential::EncryptionKey),
            max_idle_connections: core.max_idle_connections,
            max_open_connections: core.max_open_connections,
        }
    }

    /// Returns the URL of the token service.
    pub(super) fn token_service(&self) -> String {
        format!("{}/service/token", self.url(Component::Core))
    }

    /// Returns Core's URL with its port.
    pub(super) fn core_url(&self) -> String {
        self.names.url_with_port(Component::Core, self.served)
    }

    fn neighbours(&self) -> CoreComponents {
        let common = self.common();
        CoreComponents {
            chart_repository: common.chartmuseum.as_ref().map(|charts| CoreChartRepository {
                url: self.url(Component::ChartMuseum),
                absolute_url: charts.absolute_url,
                cache_driver: ChartCacheDriver::Redis,
            }),
            job_service: CoreJobService {
                url: self.url(Component::JobService),
                secret_ref: self.credential(Credential::JobServiceSecret),
            },
            notary_server: common
                .notary
                .as_ref()
                .map(|_| CoreNotaryServer { url: self.url(Component::NotaryServer) }),
            portal: CorePortal { url: self.url(Component::Portal) },
            registry: CoreRegistry {
                url: self.url(Component::Registry),
                controller_url: self.url(Component::RegistryController),
                storage_provider_name: Some(self.store.name().to_owned()),
                sync: false,
                credentials: self.registry_credentials(),
                redis: Some(self.redis(database::REGISTRY)),
            },
            tls: self.tls(Component::Core),
            token_service: CoreTokenService { url: self.token_service(), certificate_ref: self.token_key() },
            trivy: common.trivy.as_ref().map(|_| CoreTrivy {
                url: self.url(Component::Trivy),
                adapter_url: self.url(Component::Trivy),
            }),
        }
    }

    /// Returns true if the components use internal TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.served == Served::Https
    }
}
