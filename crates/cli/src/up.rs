//! `windlass up` and `windlass down`.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Instant;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass_testenv::assets::Assets;
use windlass_testenv::control_plane::{self, ControlPlane, Facts, Options, UP};
use windlass_testenv::dirs;

use crate::args;
use crate::console::{self, Console};
use crate::example;
use crate::failure::Failure;
use crate::kubectl::kubectl;

pub(crate) fn up(args: &args::Up) -> Result<(), Failure> {
    let console = Console::new(args.output);
    if args.kubeconfig.is_some() || args.context.is_some() {
        return runtime()?.block_on(on_a_cluster(args, &console));
    }
    let Some(_turn) = take_turn()? else { return already_up(&console) };
    if control_plane::instance(UP)?.is_some() {
        return already_up(&console);
    }
    runtime()?.block_on(embedded(args, &console))
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Held while `up` starts or runs in the foreground. The kernel lets go with us.
fn take_turn() -> Result<Option<File>, Failure> {
    let path = dirs::run()?.join("up.turn");
    let file = dirs::lock_file(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Failure::Environment(format!("{}: {error}", path.display()))),
    }
}

fn already_up(console: &Console) -> Result<(), Failure> {
    let Some(status) = control_plane::instance(UP)?.filter(|status| status.ready) else {
        return Err(Failure::Running(
            "another `windlass up` is starting: wait for it, or stop it".to_owned(),
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

/// The embedded control plane, until somebody stops it.
async fn embedded(args: &args::Up, console: &Console) -> Result<(), Failure> {
    let began = Instant::now();
    // Listened for from the start: a stop during the start is a stop too.
    let mut stop = Stop::listen()?;
    console.heading("starting a Kubernetes control plane on this machine");
    let options = Options { port: args.port, nodes: args.nodes, ..Options::up() };
    let reporter = console.reporter();
    let (sender, joined) = tokio::sync::oneshot::channel();
    // Not `spawn_blocking`: the runtime would wait for it when we stop.
    std::thread::spawn(move || {
        let result =
            Assets::locate(&reporter).and_then(|assets| ControlPlane::join(&assets, &options, &reporter));
        let _ = sender.send(result);
    });
    let plane = tokio::select! {
        joined = joined => joined.map_err(|_| Failure::Running("the start was given up".to_owned()))??,
        () = stop.wanted() => {
            console.result("stopped", json!({}), "stopped before it was up");
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
    let started = tokio::select! {
        started = example::start(args.example, plane.facts(), console) => started,
        () = stop.wanted() => {
            plane.shutdown()?;
            console.result("stopped", json!({}), "stopped before the example was up");
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
                return Err(Failure::Running(format!("the control plane is gone: {}", gone.reason)));
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

/// What to try on a control plane with nothing on it.
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
kube-scheduler, and KWOK with {nodes} nodes whose pods are played, not run.

  API server   {server}
  data, logs   {dir} (removed when it stops)
",
        version = facts.version,
        nodes = args.nodes,
        server = facts.server,
        dir = facts.dir.display(),
    )
}

/// A cluster that is there already: nothing is started, so nothing is stopped.
async fn on_a_cluster(args: &args::Up, console: &Console) -> Result<(), Failure> {
    let (kubeconfig, from) = match &args.kubeconfig {
        Some(path) => (read_kubeconfig(path)?, path.display().to_string()),
        None => (
            Kubeconfig::read()
                .map_err(|error| Failure::Environment(format!("no kubeconfig can be read: {error}")))?,
            "the default kubeconfig".to_owned(),
        ),
    };
    let context = args.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| &*context.name).collect();
    if !names.contains(&&*context) {
        let which =
            if names.is_empty() { "has no contexts".to_owned() } else { format!("has {}", names.join(", ")) };
        return Err(Failure::Environment(format!(
            "there is no context {context:?}: {from} {which}; choose one with --context"
        )));
    }
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::Environment(format!("context {context:?} of {from} cannot be used: {error}"))
    };
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| unusable(&error))?;
    let server = config.cluster_url.to_string();
    let client = kube::Client::try_from(config).map_err(|error| unusable(&error))?;
    console.heading(&format!("connecting to {server}"));
    let deadline = std::time::Duration::from_secs(15);
    let version = match tokio::time::timeout(deadline, client.apiserver_version()).await {
        Ok(Ok(version)) => version,
        Ok(Err(error)) => return Err(Failure::Running(format!("{server} does not answer: {error}"))),
        Err(_) => {
            return Err(Failure::Running(format!(
                "{server} does not answer within {} s",
                deadline.as_secs()
            )));
        }
    };
    let text = format!(
        "connected to Kubernetes {} at {server} (context {context:?}); nothing was changed.\n\nTo try an example there: apply examples/game/deploy/crds.yaml, and run its operator from here: \
         `cargo run -p game -- --webhook-bind-address=0`.",
        version.git_version
    );
    console.result(
        "connected",
        json!({"server": server, "version": version.git_version, "context": context}),
        &text,
    );
    Ok(())
}

fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, Failure> {
    // kube's own message does not name the file.
    std::fs::read_to_string(path)
        .map_err(|error| error.to_string())
        .and_then(|text| Kubeconfig::from_yaml(&text).map_err(|error| error.to_string()))
        .map_err(|error| {
            Failure::Environment(format!("kubeconfig {} cannot be read: {error}", path.display()))
        })
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
        console::print("nothing is up");
    }
    Ok(())
}
