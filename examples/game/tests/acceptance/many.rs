//! The cost of many Games: requests, counted by the API server, and memory.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use game::api::Phase;
use kube::api::ListParams;
use windlass_testenv::world::Program;
use windlass_testenv::{TestEnv, or_not_run, within};

use crate::world::{World, phase, spec};

const GAMES: usize = 200;
const PROGRAM: &str = env!("CARGO_BIN_EXE_game");

/// Each Game costs three objects and a status; Games whose Pods take longer cost a second status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_games_cost_five_requests_each_and_then_none() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "many").await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, world.user.kubeconfig()?)?;
    let arguments = ["-n", world.namespace.name(), "--webhook-bind-address=0"];

    let mark = world.mark()?;
    let program = Program::start(PROGRAM, &kubeconfig, &arguments, &[])?;
    program.controller_ready("mygame").await?;
    let names: Vec<String> = (0..GAMES).map(|number| format!("game-{number}")).collect();
    let created = stream::iter(&names).map(|name| world.create(name, spec(1))).buffer_unordered(16);
    created.try_for_each(|_| async { Ok(()) }).await?;
    within(std::time::Duration::from_mins(5), "all Games to run", || async {
        let games = world.games.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let running = games.iter().filter(|game| phase(game) == Some(Phase::Running)).count();
        if running == GAMES { Ok(()) } else { Err(format!("{running} do")) }
    })
    .await?;
    program.idle_after(GAMES as u64).await?;
    // Stopping writes out the events that are still to be told.
    let resident = program.resident()?;
    program.stop()?;
    let requests = world.requests(mark)?;
    println!("{GAMES} Games, from nothing to running: {requests}");
    println!("{resident:.1} MB resident with {GAMES} Games");
    assert!(requests.count() <= 5 * GAMES, "{requests}");
    assert!(requests.filter(|request| request.code >= 400).is_empty(), "{requests}");

    let mark = world.mark()?;
    let again = Program::start(PROGRAM, &kubeconfig, &arguments, &[])?;
    again.controller_ready("mygame").await?;
    again.idle_after(GAMES as u64).await?;
    let requests = world.requests(mark)?;
    println!("the same again, after a restart: {requests}");
    println!("{:.1} MB resident with {GAMES} Games", again.resident()?);
    assert!(requests.writes().is_empty(), "{requests}");
    Ok(again.stop()?)
}
