//! The Harbor of a HarborCluster.

use crate::api::Harbor;
use crate::api::driver::ImageChartStorage;
use crate::api::harbor::{HarborCommon, HarborSpec};
use crate::api::postgres::HarborDatabase;
use crate::api::redis::RedisHost;

use super::Site;

/// Returns the Harbor that uses these dependencies.
pub(super) fn harbor(
    site: &Site<'_>,
    redis: RedisHost,
    database: HarborDatabase,
    storage: ImageChartStorage,
) -> Harbor {
    let mut common = site.common().clone();
    if let Some(authority) = storage.s3.as_ref().and_then(|s3| s3.certificate_ref.as_deref()) {
        trust(&mut common, authority);
    }
    let spec = HarborSpec {
        common,
        database: Some(database),
        redis: Some(redis),
        image_chart_storage: Some(storage),
    };
    let mut harbor = Harbor::new(&site.names.harbor(), spec);
    harbor.metadata = site.metadata(&site.names.harbor());
    let inherited: std::collections::BTreeMap<_, _> = site.inherited().collect();
    harbor.metadata.annotations = Some(inherited).filter(|all| !all.is_empty());
    harbor
}

/// Makes all components trust the certificate authority of the storage, because they connect to it or are
/// redirected to it.
fn trust(common: &mut HarborCommon, authority: &str) {
    let add = |refs: &mut Vec<String>| {
        if !refs.iter().any(|known| known == authority) {
            refs.push(authority.to_owned());
        }
    };
    add(&mut common.core.get_or_insert_default().certificate_refs);
    add(&mut common.jobservice.get_or_insert_default().certificate_refs);
    if let Some(trivy) = &mut common.trivy {
        add(&mut trivy.certificate_refs);
    }
    if let Some(charts) = &mut common.chartmuseum {
        add(&mut charts.certificate_refs);
    }
}
