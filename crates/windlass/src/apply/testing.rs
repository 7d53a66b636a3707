//! An applier without a server, for tests of nodes that reach no cluster.

use serde_json::Value;
use windlass_runtime::cache::Cache;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::events::{Recorder, RecorderOptions};

use super::applier::{Applier, Report};
use super::history::{WRITES, WriteHistory};
use super::keyring::Keyring;
use super::run::Run;
use super::writer::Writer;
use crate::metrics::PlanMetrics;
use crate::needs::{Pass, Registry, Wake};
use crate::plan::DigestKey;
use crate::plan::drawn::Drawn;
use crate::plan::node::{Place, Visited};
use crate::plan::owner::OwnerView;

/// An owner of a plan.
pub(crate) fn owner() -> OwnerView {
    OwnerView::sample("web", Value::Null)
}

fn applier() -> Applier {
    // No server listens at this address.
    let client =
        Client::new(kube::Config::new("http://127.0.0.1:9".parse().unwrap()), ClientOptions::default())
            .unwrap();
    let cache = Cache::new(&client);
    let (recorder, _) = Recorder::new(&client, RecorderOptions::new("shop.test")).unwrap();
    let (wake, _) = Wake::channel();
    Applier {
        name: "shop.test",
        kinds: Vec::new(),
        pods: None,
        writer: Writer { client: client.clone(), manager: "shop.test".to_owned(), predecessors: Vec::new() },
        needs: Registry::new(&cache, wake, Vec::new(), Vec::new()),
        keyring: Keyring::given(&client, &cache, DigestKey::from_bytes(&[7; 32])),
        history: WriteHistory::default(),
        mutations: Vec::new(),
        metrics: PlanMetrics::hidden(),
        recorder,
        concurrency: 1,
        writes: WRITES,
        has_owner: Box::new(|_| false),
    }
}

/// Visits every node of a plan.
pub(crate) async fn run_of(owner: &OwnerView, drawn: &Drawn) -> Report {
    let applier = applier();
    let pass = Pass::begin(&applier.needs, &owner.key);
    applier.apply(owner, &pass, drawn).await.report
}

/// Removes one node.
pub(crate) async fn remove(owner: &OwnerView, drawn: &Drawn, place: &Place) -> Visited {
    let applier = applier();
    let pass = Pass::begin(&applier.needs, &owner.key);
    let run = Run::new(&applier, owner, &pass, drawn);
    place.node.remove(place, &run).await
}
