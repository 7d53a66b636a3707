//! `windlass up` and `windlass down`: the control plane on this machine.

use std::time::Instant;

use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_testenv::assets::Assets;
use windlass_testenv::control_plane::{self, ControlPlane, Facts, Options, UP};

use crate::args;
use crate::cluster::{self, Cluster};
use crate::console::{self, Console};
use crate::example;
use crate::failure::Failure;
use crate::kubectl::kubectl;
use crate::turn::Turn;

pub(crate) fn up(args: &args::Up) -> Result<(), Failure> {
    let console = Console::new(args.output);
    if args.kubeconfig.is_some() || args.context.is_some() {
        return runtime()?.block_on(on_a_cluster(args, &console));
    }
    let Some(mut turn) = Turn::take(&console)? else { return already_up(&console) };
    if control_plane::instance(UP)?.is_some() {
        return already_up(&console);
    }
    runtime()?.block_on(embedded(args, &console, &mut turn))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn already_up(console: &Console) -> Result<(), Failure> {
    let Some(status) = control_plane::instance(UP)?.filter(|status| status.ready) else {
        return Err(Failure::Running(
            "another `windlass up` is still starting: wait for it, or stop it".to_owned(),
        ));
    };
    let text = format!(
        "windlass is already up at {}\n\n  export KUBECONFIG={}\n\n`windlass down` stops it.",
        status.facts.server,
        status.facts.kubeconfig.display()
    );
    console.result("already-up", json!(status.facts), &text);
    Ok(())
}

/// Runs the embedded control plane until it is stopped.
async fn embedded(args: &args::Up, console: &Console, turn: &mut Turn) -> Result<(), Failure> {
    let began = Instant::now();
    // From the beginning: a stop during the start counts too.
    let mut stop = Stop::listen()?;
    console.heading("starting a Kubernetes control plane on this machine");
    let options = Options { port: args.port, nodes: args.nodes, ..Options::up() };
    let reporter = console.reporter();
    let (sender, joined) = tokio::sync::oneshot::channel();
    // Not `spawn_blocking`: the runtime would wait for it at the end.
    std::thread::spawn(move || {
        let result =
            Assets::locate(&reporter).and_then(|assets| ControlPlane::join(&assets, &options, &reporter));
        let _ = sender.send(result);
    });
    let plane = tokio::select! {
        joined = joined => joined.map_err(|_| Failure::Running("the control plane was not started: its thread ended early".to_owned()))??,
        () = stop.wanted() => {
            turn.stopping();
            console.result("stopped", json!({}), "stopped before the control plane was ready");
            return Ok(());
        }
    };
    let text = summary(plane.facts(), args, began.elapsed().as_secs_f32());
    if args.detach {
        plane.keep()?;
        let around = look_around(plane.facts());
        console.result("ready", json!(plane.facts()), &format!("{text}{around}\n`windlass down` stops it."));
        return Ok(());
    }
    console.heading(text.trim_end());
    let cluster = Cluster::embedded(plane.facts()).await?;
    let started = tokio::select! {
        started = example::start(args.example, &cluster, console) => started,
        () = stop.wanted() => {
            turn.stopping();
            plane.shutdown()?;
            console.result("stopped", json!({}), "stopped before the example was ready");
            return Ok(());
        }
    };
    let (mut operator, text) = match started {
        Ok(Some((operator, text))) => (Some(operator), text),
        Ok(None) => (None, look_around(plane.facts())),
        Err(failure) => {
            plane.shutdown()?;
            return Err(failure);
        }
    };
    let mut ready = json!(plane.facts());
    if let Some(operator) = &operator {
        ready["operator"] = operator.facts();
    }
    console.result("ready", ready, &format!("{text}\nCtrl-C stops it."));
    let gone = plane.gone();
    let ended = async {
        match &mut operator {
            Some(operator) => operator.ended().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.wanted() => {
            turn.stopping();
            if let Some(operator) = operator {
                operator.stop().await;
            }
            plane.shutdown()?;
        }
        failure = ended => {
            plane.shutdown()?;
            return Err(failure);
        }
        gone = gone => {
            if !gone.on_purpose {
                return Err(Failure::Running(format!("the control plane has stopped: {}", gone.reason)));
            }
        }
    }
    console.result("stopped", json!({}), "\nstopped; nothing is left running");
    Ok(())
}

/// Ctrl-C and SIGTERM.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> Result<Self, Failure> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Returns commands to try on an empty control plane.
fn look_around(facts: &Facts) -> String {
    let (kubectl, kubeconfig) = (kubectl(facts), facts.kubeconfig.display());
    format!(
        "
To use it, in another terminal:

  export KUBECONFIG={kubeconfig}

  {kubectl} get nodes
  {kubectl} create deployment hello --image=nginx --replicas=3
  {kubectl} get pods --watch
"
    )
}

fn summary(facts: &Facts, args: &args::Up, seconds: f32) -> String {
    format!(
        "
Kubernetes {version} is up after {seconds:.1} s: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler, and KWOK, which simulates {nodes} nodes and their pods: no container runs.

  API server   {server}
  data, logs   {dir} (deleted when it stops)
",
        version = facts.version,
        nodes = args.nodes,
        server = facts.server,
        dir = facts.dir.display(),
    )
}

/// Runs an example on an existing cluster. The cluster is not stopped at the end.
async fn on_a_cluster(args: &args::Up, console: &Console) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let kubeconfig = cluster::Choice { file: args.kubeconfig.clone(), context: args.context.clone() };
    let found = Cluster::existing(&kubeconfig).await?;
    example::check(args.example, &found)?;
    console.heading(&format!("connecting to {}", found.server));
    let version = found.version().await?;
    let connected =
        format!("connected to Kubernetes {version} at {} (context {:?})", found.server, found.context);
    let mut facts = json!({"server": found.server, "version": version, "context": found.context});
    if args.example == args::Example::None {
        console.result("connected", facts, &format!("{connected}; nothing was changed"));
        return Ok(());
    }
    console.heading(&connected);
    example::may_install(args.example, &found).await?;
    let started = tokio::select! {
        started = example::start(args.example, &found, console) => started?,
        () = stop.wanted() => {
            console.result("stopped", json!({}), "stopped before the example was ready; what was applied stays");
            return Ok(());
        }
    };
    let Some((mut operator, text)) = started else { return Ok(()) };
    facts["operator"] = operator.facts();
    console.result(
        "ready",
        facts,
        &format!("{text}\nCtrl-C stops the operator; what it has installed stays in the cluster."),
    );
    tokio::select! {
        () = stop.wanted() => operator.stop().await,
        failure = operator.ended() => return Err(failure),
    }
    console.result(
        "stopped",
        json!({}),
        "\nthe operator has stopped; what it has installed stays in the cluster",
    );
    Ok(())
}

pub(crate) fn down(args: &args::Down) -> Result<(), Failure> {
    let mut stopped = 0;
    for status in control_plane::instances()? {
        if args.all || status.facts.name == UP {
            control_plane::shutdown(&status.facts.dir)?;
            console::print(&format!("stopped {} ({})", status.facts.name, status.facts.server));
            stopped += 1;
        }
    }
    if stopped == 0 {
        console::print("nothing is running");
    }
    Ok(())
}
