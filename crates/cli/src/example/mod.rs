//! An example operator on the control plane of `up`: installed as in a cluster, and run as a separate process
//! with exactly the permissions that its manifests grant.

mod install;
mod process;
mod show;

use std::ffi::OsString;
use std::process::ExitCode;

use windlass_operator::Operator;
use windlass_testenv::HeldPort;

use self::process::Running;
use self::show::Shown;
use crate::args;
use crate::cluster::Cluster;
use crate::console::Console;
use crate::failure::Failure;

/// An example: its operator, and a sample object.
struct Example {
    operator: Operator,
    sample: &'static str,
    /// Kinds whose objects are shown while the sample becomes ready.
    shows: &'static [Shown],
    /// Commands to try once it runs, each with a comment.
    tries: &'static [(&'static str, &'static str)],
}

fn example(which: args::Example) -> Option<Example> {
    match which {
        args::Example::Harbor => Some(Example {
            operator: harbor_operator::operator(),
            sample: include_str!("../../../../operators/harbor/samples/harborcluster.yaml"),
            shows: show::HARBOR,
            tries: &[
                (
                    "get harborcluster,harbor,core,registry",
                    "the HarborCluster, its Harbor and two components",
                ),
                ("describe harborcluster sample", "conditions and events"),
                ("get statefulsets,deployments,services,ingresses", "the workloads"),
                (
                    "delete deployment sample-harbor-harbor-core",
                    "delete something: the operator creates it again",
                ),
                (
                    "patch harborcluster sample --type=merge -p '{\"spec\":{\"portal\":{\"replicas\":2}}}'",
                    "change the spec",
                ),
                ("delete harborcluster sample", "deleted in order; volumes and keys are kept"),
            ],
        }),
        args::Example::Game => Some(Example {
            operator: game::operator(),
            sample: include_str!("../../../../examples/game/game-sample.yaml"),
            shows: show::GAME,
            tries: &[
                ("get games", "the Game and its state"),
                ("describe game game-sample", "conditions and events"),
                ("delete service game-sample", "delete something: the operator creates it again"),
                ("set image deployment/game-sample main=nginx", "change something: the operator reverts it"),
                ("scale game game-sample --replicas=3", "change the spec"),
            ],
        }),
        args::Example::Foo => Some(Example {
            operator: foo::operator(),
            sample: include_str!("../../../../examples/foo/example-foo.yaml"),
            shows: show::FOO,
            tries: &[
                ("get foos,deployments", "the Foo and its Deployment"),
                ("delete deployment example-foo", "delete something: the operator creates it again"),
                ("scale deployment example-foo --replicas=3", "change something: the operator reverts it"),
            ],
        }),
        args::Example::None => None,
    }
}

/// Installs the example, starts its operator, applies the sample and shows its progress. The operator runs
/// until the returned value is dropped.
pub(crate) async fn start(
    which: args::Example,
    cluster: &Cluster,
    console: &Console,
) -> Result<Option<(Running, String)>, Failure> {
    let Some(example) = example(which) else { return Ok(None) };
    let client = &cluster.client;
    let webhooks = HeldPort::any()?;
    let namespace = install::install(client, &example.operator, webhooks.port(), console).await?;
    let mut running = Running::start(cluster, which, example.operator.name(), &namespace, webhooks).await?;
    running.ready(console).await?;
    install::sample(client, example.sample, console).await?;
    match show::until_ready(client, &mut running, example.shows, example.sample, console).await {
        // Containers of a real cluster take as long as they take.
        Err(show::NotReady::Late(late)) if cluster.is_foreign => {
            console.line(&format!("{late}; the operator goes on"));
        }
        Err(show::NotReady::Late(late)) => return Err(Failure::Running(late)),
        Err(show::NotReady::Ended(failure)) => return Err(failure),
        Ok(()) => {}
    }
    let text = summary(&example, cluster, &running);
    Ok(Some((running, text)))
}

/// Returns an error if the example cannot run on this cluster. Nothing is sent to it.
pub(crate) fn check(which: args::Example, cluster: &Cluster) -> Result<(), Failure> {
    let Some(example) = example(which) else { return Ok(()) };
    if cluster.is_local() || !install::has_webhooks(&example.operator)? {
        return Ok(());
    }
    Err(Failure::Running(format!(
        "--example {which} cannot run on {}: its operator has webhooks, and the API server of a cluster elsewhere \
         cannot call a program on this machine. Nothing was changed. Install the operator in the cluster instead \
         (`windlass manifests --help`), or choose --example foo, which has no webhooks, or --example none",
        cluster.server
    )))
}

/// Returns an error if the operator must not or cannot be installed in this cluster. Nothing is written.
pub(crate) async fn may_install(which: args::Example, cluster: &Cluster) -> Result<(), Failure> {
    match example(which) {
        Some(example) => install::may_install(&cluster.client, &example.operator).await,
        None => Ok(()),
    }
}

/// Runs an example's operator in this process, which `up` has started as a child.
pub(crate) fn operate(args: &args::Operate) -> ExitCode {
    let Some(example) = example(args.example) else { return ExitCode::SUCCESS };
    // The parent holds the other end of standard input: when it has gone, this process ends.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let program = OsString::from(example.operator.name());
    windlass_operator::main_from(
        &example.operator,
        [program].into_iter().chain(args.arguments.iter().cloned()),
    )
}

fn summary(example: &Example, cluster: &Cluster, running: &Running) -> String {
    let kubectl = &cluster.kubectl;
    let width = example.tries.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let tries: Vec<String> = example
        .tries
        .iter()
        .map(|(command, why)| format!("  {kubectl} {command:<width$}   # {why}"))
        .collect();
    let tries = tries.join("\n");
    format!(
        "
The operator {name} runs as a separate process, with the permissions of its ServiceAccount.

  metrics      http://{admin}/metrics
  log          {log}

To use it, in another terminal:

  {select}

{tries}
",
        name = example.operator.name(),
        admin = running.admin,
        log = running.log.display(),
        select = cluster.select,
    )
}
