//! An example operator on the control plane of `up`: installed as in a cluster, run as a process of its own under exactly the
//! rights that its manifests grant.

mod install;
mod process;
mod show;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use windlass_operator::Operator;
use windlass_testenv::HeldPort;
use windlass_testenv::control_plane::Facts;

use self::process::Running;
use self::show::Shown;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use crate::kubectl::kubectl;

/// An example: its operator, and an object to try it with.
struct Example {
    operator: Operator,
    sample: &'static str,
    /// What is shown while it comes up.
    shows: &'static [Shown],
    /// What to try, once it runs.
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
                    "the HarborCluster, what it is made of, and how it does",
                ),
                ("describe harborcluster sample", "its conditions and events"),
                ("get statefulsets,deployments,services,ingresses", "what runs"),
                ("delete deployment sample-harbor-harbor-core", "break something: it is back at once"),
                (
                    "patch harborcluster sample --type=merge -p '{\"spec\":{\"portal\":{\"replicas\":2}}}'",
                    "change it as its user",
                ),
                ("delete harborcluster sample", "it goes, in order; volumes and keys stay"),
            ],
        }),
        args::Example::Game => Some(Example {
            operator: game::operator(),
            sample: include_str!("../../../../examples/game/game-sample.yaml"),
            shows: show::GAME,
            tries: &[
                ("get games", "the Game, and how it does"),
                ("describe game game-sample", "its conditions and events"),
                ("delete service game-sample", "break something: it is back at once"),
                ("set image deployment/game-sample main=nginx", "or this: it is undone"),
                ("scale game game-sample --replicas=3", "change it as its user"),
            ],
        }),
        args::Example::Foo => Some(Example {
            operator: foo::operator(),
            sample: include_str!("../../../../examples/foo/example-foo.yaml"),
            shows: show::FOO,
            tries: &[
                ("get foos,deployments", "the Foo, and its Deployment"),
                ("delete deployment example-foo", "break something: it is back at once"),
                ("scale deployment example-foo --replicas=3", "or this: it is undone"),
            ],
        }),
        args::Example::None => None,
    }
}

/// Installs the example, starts its operator, applies the sample and shows how it comes up. What it returns must be kept: the
/// operator ends with it.
pub(crate) async fn start(
    which: args::Example,
    facts: &Facts,
    console: &Console,
) -> Result<Option<(Running, String)>, Failure> {
    let Some(example) = example(which) else { return Ok(None) };
    let client = client(&facts.kubeconfig).await?;
    let webhooks = HeldPort::any()?;
    let namespace = install::install(&client, &example.operator, webhooks.port(), console).await?;
    let mut running =
        Running::start(&client, facts, which, example.operator.name(), &namespace, webhooks).await?;
    running.ready(console).await?;
    install::sample(&client, example.sample, console).await?;
    show::until_ready(&client, &mut running, example.shows, example.sample, console).await?;
    let text = summary(&example, facts, &running);
    Ok(Some((running, text)))
}

/// Runs an example's operator in this process: what `up` starts as a child.
pub(crate) fn operate(args: &args::Operate) -> ExitCode {
    let Some(example) = example(args.example) else { return ExitCode::SUCCESS };
    // Whoever started us holds the other end of standard input: when it is gone, we go.
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

async fn client(kubeconfig: &Path) -> Result<kube::Client, Failure> {
    let unusable =
        |error: &dyn std::fmt::Display| Failure::Running(format!("{}: {error}", kubeconfig.display()));
    let read = kube::config::Kubeconfig::read_from(kubeconfig).map_err(|error| unusable(&error))?;
    let config = kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(&error))?;
    kube::Client::try_from(config).map_err(|error| unusable(&error))
}

fn summary(example: &Example, facts: &Facts, running: &Running) -> String {
    let kubectl = kubectl(facts);
    let width = example.tries.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let tries: Vec<String> = example
        .tries
        .iter()
        .map(|(command, why)| format!("  {kubectl} {command:<width$}   # {why}"))
        .collect();
    let tries = tries.join("\n");
    format!(
        "
The operator {name} runs as a process of its own, under the rights of its ServiceAccount.

  metrics      http://{admin}/metrics
  its log      {log}

To use it, in another terminal:

  export KUBECONFIG={kubeconfig}

{tries}
",
        name = example.operator.name(),
        admin = running.admin,
        log = running.log.display(),
        kubeconfig = facts.kubeconfig.display(),
    )
}
