//! The Exporter of a Harbor.

use crate::api::exporter::{Exporter, ExporterCore, ExporterJobService, ExporterLog, ExporterSpec};
use crate::catalogue::Component;

use super::Wiring;

impl Wiring<'_> {
    /// Returns the Exporter.
    pub(crate) fn exporter(&self) -> Exporter {
        let common = self.common();
        let exporter = common.exporter.clone().unwrap_or_default();
        // Default prefix of JobService's keys: the exporter counts the jobs under it.
        let queue = format!("jobservice::{}::{}", self.names.namespace(), self.names.base());
        let spec = ExporterSpec {
            component: self.component(Some(&exporter.component), Component::Exporter),
            path: exporter.path.clone(),
            port: exporter.port,
            cache: exporter.cache.clone(),
            core: ExporterCore { url: self.core_url() },
            database: self.core_database(&common.core.clone().unwrap_or_default()),
            jobservice: Some(ExporterJobService { redis_pool: Some(self.queue(Some(queue))) }),
            log: Some(ExporterLog { level: common.log_level.exporter() }),
            network: common.network.clone(),
            tls: self.tls(Component::Exporter),
        };
        Exporter { metadata: self.metadata(), spec, status: None }
    }
}
