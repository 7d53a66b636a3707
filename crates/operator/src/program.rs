//! The program around an operator: command line, log, first screen, exit code.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use kube::config::{KubeConfigOptions, Kubeconfig};
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::log;

use crate::args::{self, Cli, Command, LogFormat};
use crate::failure::Failure;
use crate::manifests::{Install, Manifests};
use crate::operator::Operator;
use crate::own::SettingValues;
use crate::process::{AssembleError, Process};
use crate::settings::Settings;

/// Runs the command of the command line, and returns the exit code: 0 for success, 1 if it failed while it
/// ran (or manifests are out of date), 2 for an invalid command line, 3 if it could not start.
///
/// ```no_run
/// use std::process::ExitCode;
/// use windlass_operator::Operator;
///
/// fn operator() -> Operator {
///     Operator::new("shop-operator")
/// }
///
/// fn main() -> ExitCode {
///     windlass_operator::main(&operator())
/// }
/// ```
pub fn main(operator: &Operator) -> ExitCode {
    main_from(operator, std::env::args_os())
}

/// Like [`main`], with these arguments: the first is the program's name.
pub fn main_from(operator: &Operator, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    follow(operator, words, |args, _| run(operator, args))
}

/// Like [`main`], for an operator with [settings](Operator::settings) of its own: `configure` builds the
/// operator that runs from their values. Manifests and plans are those of the operator without settings.
///
/// An error should name the setting, its value and the remedy; [`SettingValues::source_of`] returns the
/// source of the value.
///
/// ```no_run
/// use std::process::ExitCode;
/// use windlass_operator::{SettingValues, Operator, Setting};
///
/// fn operator(currency: &str) -> Operator {
///     let settings = [Setting::new("currency", "CODE", "Currency of all prices; default: EUR")];
///     Operator::new("shop-operator").about(format!("Sells in {currency}")).settings(settings)
/// }
///
/// fn configured(settings: &SettingValues) -> Result<Operator, String> {
///     let currency = settings.values().find(|(key, _)| *key == "currency").map_or("EUR", |(_, value)| value);
///     Ok(operator(currency))
/// }
///
/// fn main() -> ExitCode {
///     windlass_operator::main_with(&operator("EUR"), configured)
/// }
/// ```
pub fn main_with<E: fmt::Display>(
    operator: &Operator,
    configure: impl FnOnce(&SettingValues) -> Result<Operator, E>,
) -> ExitCode {
    follow(operator, std::env::args_os(), |args, values| {
        let configured = configure(&values).map_err(|error| Failure::Setting(error.to_string()))?;
        run(&configured, args)
    })
}

fn follow(
    operator: &Operator,
    words: impl IntoIterator<Item = OsString>,
    run: impl FnOnce(&args::Run, SettingValues) -> Result<(), Failure>,
) -> ExitCode {
    let (command, values) = Cli::read(operator, words);
    let done = match command {
        Command::Run(args) => values.map_err(Failure::Environment).and_then(|values| run(&args, values)),
        Command::Manifests(args) => manifests(operator, &args),
        Command::Graph(args) => crate::graph::show(operator, &args),
        Command::Reference(args) => reference(operator, &args),
        Command::Uninstall(args) => uninstall(operator, &args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("{}: {failure}", operator.name));
            failure.code()
        }
    }
}

fn run(operator: &Operator, args: &args::Run) -> Result<(), Failure> {
    let at_terminal = std::io::stderr().is_terminal();
    let format = args.log_format.unwrap_or(if at_terminal { LogFormat::Text } else { LogFormat::Json });
    let shape = match format {
        LogFormat::Text => log::Format::Pretty,
        LogFormat::Json => log::Format::Json,
    };
    log::init_with(shape, &args.log_level).map_err(|error| Failure::Environment(error.to_string()))?;
    // Two threads are enough for a process that waits most of the time, and each costs memory.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Environment(format!("no threads can be started: {error}")))?;
    runtime.block_on(async {
        let config = config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let settings = args.settings(operator);
        let cluster = config.cluster_url.to_string();
        let process = operator.assemble(config, &settings).map_err(|error| Failure::Environment(advise(&error)))?;
        let facts = facts(operator, &settings, &process, &cluster);
        let (client, watches) = (process.client().clone(), process.watches().to_vec());
        // Started before the first screen, which says how to stop it.
        let running = process.run();
        match format {
            LogFormat::Text => say(&first_screen(&facts)),
            LogFormat::Json => tracing::info!(version = operator.version, cluster, ?watches, "starting"),
        }
        let greet = async move {
            if let Err(error) = client.kube().apiserver_version().await {
                tracing::warn!(%error, cluster, "the cluster does not answer; is its address right, and is it up? Trying again until it does");
            }
            std::future::pending().await
        };
        tokio::select! {
            ended = running => ended.map_err(|error| Failure::Running(error.to_string())),
            never = greet => never,
        }
    })
}

/// Finds the configuration of the cluster; the error says how to provide one.
async fn config(file: Option<&Path>, context: Option<&str>) -> Result<kube::Config, Failure> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let found = match (file, context) {
        (Some(file), _) => match Kubeconfig::read_from(file) {
            Ok(read) => {
                kube::Config::from_custom_kubeconfig(read, &options).await.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        },
        (None, Some(_)) => kube::Config::from_kubeconfig(&options).await.map_err(|error| error.to_string()),
        (None, None) => kube::Config::infer().await.map_err(|error| error.to_string()),
    };
    found.map_err(|error| {
        let which = file.map_or("the kubeconfig".to_owned(), |file| file.display().to_string());
        Failure::Environment(format!(
            "no cluster to work in: {which} cannot be used ({error}).\n\
             Name a kubeconfig with --kubeconfig or KUBECONFIG, or start a cluster on this machine with `windlass up`."
        ))
    })
}

fn advise(error: &AssembleError) -> String {
    match error {
        AssembleError::Port(_) => {
            format!("{error} (--metrics-bind-address, --health-probe-bind-address, --webhook-bind-address)")
        }
        AssembleError::Election(_) => format!("{error} (--operator-namespace says it on the command line)"),
        _ => error.to_string(),
    }
}

/// Returns the lines of the first screen.
fn facts(
    operator: &Operator,
    settings: &Settings,
    process: &Process,
    cluster: &str,
) -> Vec<(&'static str, String)> {
    let join = |parts: Vec<String>| parts.join(", ");
    let kinds = join(process.watches().iter().map(|kind| kind.kind.to_string()).collect());
    let place = if settings.namespaces.is_empty() {
        "all namespaces".to_owned()
    } else {
        format!("namespace {}", join(settings.namespaces.iter().cloned().collect()))
    };
    let mut facts = vec![
        ("operator", format!("{} {}", operator.name, operator.version)),
        ("cluster", cluster.to_owned()),
        ("watches", format!("{kinds} in {place}")),
    ];
    if let Some(lease) = &settings.election {
        facts.push(("election", format!("by Lease {}", lease.name.as_deref().unwrap_or(operator.name))));
    }
    if let Some(address) = process.admin().first() {
        facts.push(("health", format!("http://{address}/readyz?verbose")));
    }
    if let Some(address) = process.secure_metrics() {
        facts.push(("metrics", format!("https://{address}/metrics")));
    } else if let Some(address) = process.admin().first() {
        facts.push(("metrics", format!("http://{address}/metrics")));
    }
    if let Some(address) = process.webhooks() {
        facts.push(("webhooks", format!("https://{address}")));
    }
    facts
}

fn first_screen(facts: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (name, fact) in facts {
        let _ = writeln!(text, "  {name:<10} {fact}");
    }
    text.push_str("\nCtrl-C stops it in order, a second one at once.\n");
    text
}

fn manifests(operator: &Operator, args: &args::Manifests) -> Result<(), Failure> {
    let mut install = Install::of(operator);
    if let Some(namespace) = &args.namespace {
        install = install.namespace(namespace);
    }
    if let Some(image) = &args.image {
        install = install.image(image);
    }
    if args.namespaced {
        install = install.namespaced();
    }
    if !args.watch.is_empty() {
        install = install.watching(&args.watch);
    }
    let manifests = Manifests::of(operator, &install).map_err(|error| Failure::Running(error.to_string()))?;
    match (&args.out, &args.check) {
        (Some(directory), _) => {
            let written =
                manifests.write(directory).map_err(|error| Failure::Environment(error.to_string()))?;
            say(&format!("{} holds {}", directory.display(), written.join(", ")));
            Ok(())
        }
        (None, Some(directory)) => manifests.check(directory).map_err(|mut stale| {
            // The same command line as the user's, except for one word.
            let words =
                std::env::args().map(|word| if word == "--check" { "--out".to_owned() } else { word });
            stale.refresh = words.collect::<Vec<_>>().join(" ").replace("--check=", "--out=");
            Failure::Stale(stale.to_string())
        }),
        (None, None) => {
            // A closed standard output is no error: the reader has read enough.
            let _ = std::io::stdout().write_all(manifests.stream().as_bytes());
            Ok(())
        }
    }
}

fn reference(operator: &Operator, args: &args::Reference) -> Result<(), Failure> {
    let kinds: Vec<&str> = args.kinds.iter().map(String::as_str).collect();
    let page = crate::reference::reference(operator, &kinds);
    let page = page.map_err(|error| Failure::Setting(error.to_string()))?;
    // A closed standard output is no error: the reader has read enough.
    let _ = std::io::stdout().write_all(page.as_bytes());
    Ok(())
}

fn uninstall(operator: &Operator, args: &args::Uninstall) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Environment(format!("no threads can be started: {error}")))?;
    runtime.block_on(async {
        let config = config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let user_agent = format!("{}/{}", operator.name, operator.version);
        let client = Client::new(config, ClientOptions { user_agent, ..ClientOptions::default() });
        let client = client.map_err(|error| Failure::Environment(error.to_string()))?;
        // A closed standard output is no reason to stop half-way.
        let print = |line: &str| drop(writeln!(std::io::stdout(), "{line}"));
        crate::uninstall::uninstall(operator, args, &client, &print).await
    })
}

/// Writes to standard error; a closed terminal is no reason to fail.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_is_not_there_is_an_error_that_says_what_to_do() {
        let failure = config(Some(Path::new("/nowhere/kubeconfig")), None).await.unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("/nowhere/kubeconfig") && text.contains("windlass up"), "{text}");
        assert_eq!(format!("{:?}", failure.code()), format!("{:?}", ExitCode::from(3)));
    }
}
