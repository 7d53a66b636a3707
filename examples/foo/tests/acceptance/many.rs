//! The cost of many Foos: requests, counted by the API server, and memory.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::ListParams;
use windlass_testenv::world::Program;
use windlass_testenv::{TestEnv, eventually, or_not_run};

use crate::world::{World, spec};

const FOOS: usize = 500;
const PROGRAM: &str = env!("CARGO_BIN_EXE_foo");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_foos_cost_four_requests_each_and_then_none() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "many").await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, world.user.kubeconfig()?)?;
    let arguments = ["-n", world.namespace.name()];

    let mark = world.mark()?;
    let program = Program::start(PROGRAM, &kubeconfig, &arguments, &[])?;
    program.controller_ready("foo").await?;
    let names: Vec<String> = (0..FOOS).map(|number| format!("foo-{number}")).collect();
    let created = stream::iter(&names).map(|name| world.create(name, spec(name, 1))).buffer_unordered(16);
    created.try_for_each(|_| async { Ok(()) }).await?;
    windlass_testenv::within(std::time::Duration::from_mins(5), "all Foos to be available", || async {
        let foos = world.foos.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let available =
            |foo: &foo::api::Foo| foo.status.as_ref().is_some_and(|status| status.available_replicas == 1);
        let done = foos.iter().filter(|foo| available(foo)).count();
        if done == FOOS { Ok(()) } else { Err(format!("{done} are")) }
    })
    .await?;
    eventually("all events to be written", || async {
        let events = world
            .requests(mark)
            .map_err(|error| error.to_string())?
            .resource("events")
            .verb("create")
            .count();
        if events == FOOS { Ok(()) } else { Err(format!("{events} are")) }
    })
    .await?;
    program.idle_after(1).await?;
    let requests = world.requests(mark)?;
    println!("{FOOS} Foos, from nothing to available: {requests}");
    println!("{:.1} MB resident with {FOOS} Foos", program.resident()?);
    let writes = requests.writes().count();
    assert!(writes <= 4 * FOOS, "{requests}");
    // The two kinds are listed and watched once, however many Foos there are.
    assert!(requests.count() - writes <= 5, "{requests}");
    assert!(
        requests.code(403).is_empty() && requests.filter(|request| request.code >= 400).is_empty(),
        "{requests}"
    );
    program.stop()?;

    let mark = world.mark()?;
    let again = Program::start(PROGRAM, &kubeconfig, &arguments, &[])?;
    again.controller_ready("foo").await?;
    again.idle_after(FOOS as u64).await?;
    let requests = world.requests(mark)?;
    println!("the same again, after a restart: {requests}");
    println!("{:.1} MB resident with {FOOS} Foos", again.resident()?);
    assert!(requests.writes().is_empty(), "{requests}");
    Ok(again.stop()?)
}
