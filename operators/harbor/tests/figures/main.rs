//! Measures the cost of Harbors: requests as the API server counts them, memory, and CPU time.
//!
//! The Harbors are as the archived operator wanted them: with an issuer for the key that signs tokens, which
//! cert-manager makes (here: this test). It had to be named there. Without one our operator makes the key
//! itself, once in the life of a Harbor, and that takes a quarter of a second.
//!
//! Five Harbors by default. More, or another build of the program (a test's own is not optimised):
//! `WINDLASS_HARBORS=50 HARBOR_OPERATOR=… cargo test -p harbor-operator --test figures -- --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

#[path = "../harbor/world.rs"]
#[allow(dead_code)] // it is made for more
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use harbor_operator::api::Harbor;
use harbor_operator::harbor::certmanager::Certificate;
use k8s_openapi::api::core::v1::Secret;
use kube::CustomResourceExt as _;
use kube::api::ListParams;
use serde_json::json;
use windlass_testenv::world::Program;
use windlass_testenv::{Options, Requests, TestEnv, or_not_run, within};
use world::{World, harbor, status_and_message};

/// The most requests that the first Harbor of an installation may cost until it is ready, Events and Leases
/// apart.
const FIRST: usize = 70;
/// The most requests that each of many Harbors may cost.
const EACH: usize = 64;
/// Requests of the first Harbor that are not for status: one write and at most one watch for each object. The
/// number of status writes depends on how long things take (at most one per second while the Harbor waits),
/// and a busy machine is no fault of the operator.
const FIRST_WITHOUT_STATUS: usize = 58;
const EACH_WITHOUT_STATUS: usize = 54;
/// Number of Harbors for the measurement of the released program: its memory, and its CPU time until all of
/// them are ready. The archived operator took 106 MB, 69 seconds and 37,893 requests for fifty.
const MANY: usize = 50;
const MEGABYTES: f64 = 30.0;
const SECONDS: f64 = 6.9;
/// A Harbor and its five components: core, registry, registryctl, jobservice, portal.
const OBJECTS: u64 = 6;

/// The variable that names another build of the program.
const BINARY: &str = "HARBOR_OPERATOR";

fn amount() -> Result<usize> {
    match std::env::var("WINDLASS_HARBORS") {
        Ok(text) => text.parse().with_context(|| format!("WINDLASS_HARBORS={text}: write a number")),
        Err(_) => Ok(5),
    }
}

fn binary() -> String {
    let own = || env!("CARGO_BIN_EXE_harbor-operator").to_owned();
    std::env::var(BINARY).unwrap_or_else(|_| own())
}

/// Counts the requests that are not for status. Requests for kinds that are not installed do not count: they
/// are repeated at an interval that does not depend on the number of Harbors.
fn without_status(requests: &Requests) -> usize {
    let others = requests.filter(|request| request.subresource != "status");
    let missing = |resource: &str| resource != "certificates" && world::MISSING_KINDS.contains(&resource);
    others.filter(|request| !missing(&request.resource)).count()
}

#[allow(clippy::print_stdout)] // it is what the test is for
fn show(what: &str, asked: &Requests, program: &Program) -> Result<()> {
    let mut counts = BTreeMap::<String, usize>::new();
    for request in asked.iter() {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        let kind = format!("{} {}{slash}{}", request.verb, request.resource, request.subresource);
        *counts.entry(kind).or_default() += 1;
    }
    println!(
        "{what}: {} requests, {:.1} MB resident, {:.2} s of processors",
        asked.count(),
        program.resident()?,
        program.processor_time()?,
    );
    println!("{counts:#?}");
    Ok(())
}

struct Figures {
    world: World,
    kubeconfig: tempfile::TempPath,
}

impl Figures {
    async fn new(env: TestEnv) -> Result<Self> {
        let world = World::new(env, "figures").await?;
        let kubeconfig = tempfile::NamedTempFile::new()?.into_temp_path();
        std::fs::write(&kubeconfig, world.user.kubeconfig()?)?;
        Ok(Self { world, kubeconfig })
    }

    async fn start(&self) -> Result<Program> {
        let home = self.world.namespace.name();
        let args = ["-n", home, "--webhook-bind-address=0"];
        let program = Program::start(&binary(), &self.kubeconfig, &args, &[("POD_NAMESPACE", home)])?;
        for part in ["harbor", "core", "registry", "registryctl", "jobservice", "portal"] {
            program.controller_ready(&format!("{part}.goharbor.io")).await?;
        }
        Ok(program)
    }

    async fn create(&self, number: usize) -> Result<()> {
        let mut one = harbor();
        let host = format!("harbor-{number}.example.com");
        one["metadata"]["name"] = json!(format!("harbor-{number}"));
        one["spec"]["externalURL"] = json!(format!("https://{host}"));
        one["spec"]["expose"]["core"]["ingress"]["host"] = json!(host);
        one["spec"]["core"]["tokenIssuer"] = json!({"name": "authority"});
        self.world.put::<Harbor>(one).await?;
        Ok(())
    }

    /// Issues the certificate of a Harbor as cert-manager does. No test reads the key.
    async fn issue(&self, number: usize) -> Result<()> {
        let name = format!("harbor-{number}-harbor-core-tokencert");
        let asked = |asked: &Certificate| asked.spec.issuer_ref.name == "authority";
        self.world.see::<Certificate>(&name, "asked for", asked).await?;
        let data = json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"});
        let issued = json!({"metadata": {"name": name}, "type": "kubernetes.io/tls", "stringData": data});
        self.world.put::<Secret>(issued).await?;
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        self.world.change::<Certificate>(&name, ready).await?;
        Ok(())
    }

    /// Waits until so many are ready.
    async fn ready(&self, amount: usize) -> Result<()> {
        let harbors = self.world.namespace.api::<Harbor>();
        let all = within(Duration::from_mins(20), "all Harbors to be ready", || async {
            let found = harbors.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let ready = found.iter().filter(|harbor| status_and_message(harbor, "Ready").0 == "True").count();
            if ready == amount { Ok(()) } else { Err(format!("{ready} are")) }
        });
        Ok(all.await?)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn harbors_stay_within_their_budget_and_cost_nothing_after_a_restart() -> Result<()> {
    // Kinds are the whole control plane's: one of its own, for that of cert-manager.
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    env.install_crds(&[world::open(&Certificate::crd())]).await?;
    let figures = Figures::new(TestEnv::clone(&env)).await?;
    let amount = amount()?;

    let started = figures.world.mark()?;
    let program = figures.start().await?;
    show("from nothing to waiting for Harbors", &figures.world.requests(started)?, &program)?;
    let begun = figures.world.mark()?;
    figures.create(0).await?;
    figures.issue(0).await?;
    figures.ready(1).await?;
    program.idle_after(OBJECTS).await?;
    let first = figures.world.requests(begun)?;
    show("one Harbor, from nothing to ready", &first, &program)?;
    println!("at most {FIRST} requests are wanted");
    assert!(without_status(&first) <= FIRST_WITHOUT_STATUS, "{first}");

    for number in 1..amount {
        figures.create(number).await?;
    }
    for number in 1..amount {
        figures.issue(number).await?;
    }
    figures.ready(amount).await?;
    program.idle_after(OBJECTS * amount as u64).await?;
    let all = figures.world.requests(begun)?;
    show(&format!("{amount} Harbors, from nothing to ready"), &all, &program)?;
    println!("at most {} requests are wanted", EACH * amount);
    let others = without_status(&all);
    assert!(others <= EACH_WITHOUT_STATUS * amount + FIRST_WITHOUT_STATUS, "{others}");
    let failed = all.filter(|request| request.code >= 400 && request.code != 404);
    assert!(failed.is_empty(), "{failed}");
    if amount >= MANY && std::env::var_os(BINARY).is_some() {
        let (resident, busy) = (program.resident()?, program.processor_time()?);
        assert!(all.count() <= EACH * amount, "{} requests", all.count());
        assert!(resident <= MEGABYTES, "{resident} MB resident");
        assert!(busy <= SECONDS, "{busy} s of processors");
    }

    let quiet = figures.world.mark()?;
    program.stop()?;
    assert!(figures.world.requests(quiet)?.writes().is_empty());

    let restarted = figures.world.mark()?;
    let program = figures.start().await?;
    program.idle_after(OBJECTS * amount as u64).await?;
    let asked = figures.world.requests(restarted)?;
    show(&format!("a restart with {amount} Harbors"), &asked, &program)?;
    // A program asks the server for its version once, to greet it: that is no resource.
    let others =
        asked.filter(|request| !matches!(&*request.verb, "list" | "watch") && !request.resource.is_empty());
    assert!(others.is_empty(), "after a restart: {others}");
    Ok(program.stop()?)
}
