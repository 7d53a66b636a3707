//! Resident memory per cached Pod.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use windlass_runtime::cache::{Cache, Full, MetadataOnly, OfKind, Reader, Selection};
use windlass_runtime::client::{Client, ClientOptions};

use super::Row;
use super::fixture::PodShape;
use super::process::{Sibling, resident};

/// The cached form of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Name, labels, owner, node, phase, address, conditions
    Shape,
    /// The metadata only
    Metadata,
    /// The whole object
    Full,
}

/// Each row in a process of its own: what one leaves in the allocator must not help the next.
pub(crate) fn measure(objects: usize) -> Result<Vec<Row>> {
    let mut server = Sibling::start(&["serve", &objects.to_string()])?;
    let url = server.line()?;
    let size = super::fixture::pod(7).to_string().len();
    let mut rows = Vec::new();
    for (form, name) in [(Form::Shape, "shape"), (Form::Metadata, "metadata"), (Form::Full, "full")] {
        let mut row = Sibling::start(&["memory-row", name, &url, &objects.to_string()])?;
        rows.push(Row::new(
            format!("RSS per cached Pod, {form:?} ({objects} Pods of {size} B JSON)"),
            row.line()?,
        ));
    }
    Ok(rows)
}

pub(crate) fn row(form: Form, url: &str, objects: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match form {
            Form::Shape => fill::<PodShape>(url, objects, PodShape::is_whole).await,
            Form::Metadata => fill::<MetadataOnly<Pod>>(url, objects, |pod| !pod.name().is_empty()).await,
            Form::Full => fill::<Full<Pod>>(url, objects, |pod| pod.spec.is_some()).await,
        }
    })
}

async fn fill<S: OfKind>(url: &str, objects: usize, is_whole: fn(&S) -> bool) -> Result<()> {
    let client = client(url)?;
    let before = resident()?;
    let cache = Cache::new(&client);
    let reader: Reader<S> = cache.reader(&Selection::all());
    cache.start();
    reader.synced().await;
    // Buffers of the list are given back by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = resident()?;
    let all = reader.list();
    anyhow::ensure!(
        all.len() == objects && all.iter().all(|object| is_whole(object)),
        "the cache is not right"
    );
    let each = (after.saturating_sub(before)) / objects as u64;
    super::print_line(&format!("{each} B"));
    Ok(())
}

pub(crate) fn client(url: &str) -> Result<Client> {
    let mut config = kube::Config::new(url.parse()?);
    // It speaks plain HTTP. In a cluster there is one authority to trust; without this, all those of
    // the operating system are loaded, which costs megabytes.
    config.accept_invalid_certs = true;
    Ok(Client::new(config, ClientOptions::default())?)
}
