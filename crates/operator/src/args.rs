//! Command line of an operator.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::operator::Operator;
use crate::own::{self, SettingValues};
use crate::settings::{Lease, Settings};

#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the operator; the default without a command
    Run(Run),
    /// Write the manifests for installing the operator: CRDs, RBAC, Deployment
    Manifests(Manifests),
    /// Show the planned objects and their order for a manifest, without a cluster
    Graph(Graph),
    /// Print a reference page of all fields of the operator's kinds, as Markdown
    Reference(Reference),
    /// Remove the operator from a cluster; users' objects and their data are kept
    ///
    /// Removes webhook configurations first, then the Deployment, then Services, rights and the account, and
    /// prints one line for each removed or kept thing. Asks no questions; --dry-run removes nothing.
    /// An interrupted run can be repeated.
    Uninstall(Uninstall),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Path of the kubeconfig; default: $KUBECONFIG, ~/.kube/config, or the ServiceAccount of the Pod
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: its current context
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace to watch, may be repeated; default: all namespaces
    #[arg(
        long = "namespace",
        short = 'n',
        env = "WATCH_NAMESPACE",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    namespaces: Vec<String>,
    /// Namespace of the operator itself; default: the namespace of its Pod
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    operator_namespace: Option<String>,
    /// Enable leader election: only the replica that holds the Lease reconciles
    #[arg(
        long,
        env = "LEADER_ELECT",
        value_name = "BOOL",
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        hide_default_value = true,
        value_parser = switch
    )]
    leader_elect: bool,
    /// Name of the leader election Lease; default: the name of the operator
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// Namespace of the leader election Lease; default: the namespace of the operator
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_namespace: Option<String>,
    /// Address of the metrics endpoint, such as :8080 or 127.0.0.1:8080; 0 disables it
    #[arg(long, env = "METRICS_BIND_ADDRESS", default_value = "127.0.0.1:8080", value_parser = address, value_name = "ADDRESS")]
    metrics_bind_address: Address,
    /// Serve metrics over TLS, to users with RBAC permission for /metrics; default: in clear, to everybody
    #[arg(
        long,
        env = "METRICS_SECURE",
        value_name = "BOOL",
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        hide_default_value = true,
        value_parser = switch
    )]
    metrics_secure: bool,
    /// Number of objects whose conditions have metrics of their own (windlass_owner_condition); 0 disables
    /// these metrics
    #[arg(long, env = "METRICS_OWNER_LIMIT", default_value_t = 1000, value_name = "NUMBER")]
    metrics_owner_limit: usize,
    /// Address of the health endpoints /healthz and /readyz, always in clear; default: the address of the
    /// metrics, or 127.0.0.1:8081 with --metrics-secure
    #[arg(long, env = "HEALTH_PROBE_BIND_ADDRESS", value_parser = address, value_name = "ADDRESS")]
    health_probe_bind_address: Option<Address>,
    /// Address of the webhook server, if the operator has webhooks; 0 disables it
    #[arg(long, env = "WEBHOOK_BIND_ADDRESS", default_value = ":9443", value_parser = address, value_name = "ADDRESS")]
    webhook_bind_address: Address,
    /// Additional DNS name or IP address in the webhook certificate, for an operator outside of the cluster;
    /// may be repeated
    #[arg(long = "webhook-name", env = "WEBHOOK_NAMES", value_delimiter = ',', value_name = "NAME")]
    webhook_names: Vec<String>,
    /// Seconds for which webhooks go on answering after SIGTERM, until no API server calls this process any
    /// more
    #[arg(long, env = "WEBHOOK_LINGER", default_value_t = 0, value_name = "SECONDS")]
    webhook_linger: u64,
    /// Number of objects of a kind that are reconciled concurrently; default: 16
    #[arg(long, env = "WORKERS", value_parser = workers, value_name = "NUMBER")]
    workers: Option<usize>,
    /// Format of the log; default: text on a terminal, json elsewhere
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Log level: error, warn, info, debug, trace, or per module (info,windlass_runtime=debug)
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) log_level: String,
}

#[derive(Debug, Args)]
pub(crate) struct Manifests {
    /// Directory to write the manifests to; default: standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Check that the manifests in this directory are up to date, and write nothing
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub(crate) check: Option<PathBuf>,
    /// Namespace to install into; default: <name>-system
    #[arg(long, short = 'n', value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Grant rights in the operator's own namespace only, and watch only that one
    #[arg(long)]
    pub(crate) namespaced: bool,
    /// Grant rights in this namespace only, and watch it; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "namespaced")]
    pub(crate) watch: Vec<String>,
    /// Image of the operator; default: <name>:<version>
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// Path of the manifest (YAML or JSON); - reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) manifest: PathBuf,
    /// Output format of the plan
    #[arg(long, short = 'o', value_enum, default_value_t)]
    pub(crate) output: GraphFormat,
}

#[derive(Debug, Args)]
pub(crate) struct Reference {
    /// Kinds to describe; default: all kinds
    #[arg(value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    /// Path of the kubeconfig; default: $KUBECONFIG, ~/.kube/config, or the ServiceAccount of the Pod
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default: its current context
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Namespace of the installation; default: <name>-system
    #[arg(long, short = 'n', value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete the operator's CustomResourceDefinitions too, and with them ALL objects of these kinds in the
    /// whole cluster, also those of other installations of this operator. Retained volumes and keys stay
    #[arg(long)]
    pub(crate) delete_crds: bool,
}

/// Output format of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Tree of text lines
    #[default]
    Text,
    /// Input for Graphviz: `dot -Tsvg`
    Dot,
    /// Mermaid diagram for Markdown pages
    Mermaid,
    /// JSON document for programs
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Address to listen on; `None` disables the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) Option<SocketAddr>);

impl Cli {
    /// Reads the command line of this operator, and the values of its own settings. Ends the process if only
    /// output was requested (`--help`), or if the command line is invalid.
    pub(crate) fn read(
        operator: &Operator,
        words: impl IntoIterator<Item = OsString>,
    ) -> (Command, Result<SettingValues, String>) {
        let matches = Self::of(operator).get_matches_from(words);
        let own = matches.subcommand_matches("run").unwrap_or(&matches);
        let values = SettingValues::read(&operator.settings, own);
        match Self::from_arg_matches(&matches) {
            Ok(cli) => (cli.command.unwrap_or(Command::Run(cli.run)), values),
            Err(error) => error.exit(),
        }
    }

    /// Returns the command line of an operator, with the flags of its settings.
    pub(crate) fn of(operator: &Operator) -> clap::Command {
        Self::command()
            .name(operator.name)
            .version(operator.version)
            .about(operator.about.clone())
            .args(own::args(&operator.settings))
            .mut_subcommand("run", |run| run.args(own::args(&operator.settings)))
    }
}

impl Run {
    pub(crate) fn settings(&self, operator: &Operator) -> Settings {
        let metrics = self.metrics_bind_address;
        let (plain, secure) = if self.metrics_secure { (None, metrics.0) } else { (metrics.0, None) };
        let health = self.health_probe_bind_address.unwrap_or(match secure {
            Some(_) => Address(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)))),
            None => metrics,
        });
        let election = self.leader_elect.then(|| Lease {
            name: self.leader_elect_resource_name.clone(),
            namespace: self.leader_elect_resource_namespace.clone(),
        });
        Settings {
            // WATCH_NAMESPACE="" means all namespaces.
            namespaces: self.namespaces.iter().filter(|name| !name.is_empty()).cloned().collect(),
            own_namespace: self.operator_namespace.clone().filter(|name| !name.is_empty()),
            workers: self.workers.or(operator.workers).unwrap_or(Settings::default().workers),
            admin: plain.into_iter().chain(health.0).collect(),
            secure_metrics: secure,
            metrics_owner_limit: self.metrics_owner_limit,
            election,
            webhooks: self.webhook_bind_address.0,
            webhook_names: self.webhook_names.iter().filter(|name| !name.is_empty()).cloned().collect(),
            webhook_linger: Duration::from_secs(self.webhook_linger),
            ..Settings::default()
        }
    }
}

/// Parses a boolean as Go's flags do; an empty variable of the environment is false.
fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" | "yes" | "y" | "on" => Ok(true),
        "false" | "f" | "0" | "no" | "n" | "off" | "" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

/// Reads an address as controller-runtime's users write it.
fn address(text: &str) -> Result<Address, String> {
    if text == "0" {
        return Ok(Address(None));
    }
    let port = text.strip_prefix(':').map(str::parse::<u16>);
    let address = match port {
        Some(Ok(port)) => Ok(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        Some(Err(_)) => Err(()),
        None => text.parse().map_err(drop),
    };
    address.map(|address| Address(Some(address))).map_err(|()| {
        format!(
            "{text:?} is not an address: use :8080 for all interfaces, 127.0.0.1:8080 for one, 0 for none"
        )
    })
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("take a number from 1 up".to_owned()),
        Ok(workers) => Ok(workers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::Setting;

    fn settings(args: &[&str]) -> Settings {
        let cli = Cli::try_parse_from([&["operator"], args].concat()).unwrap();
        match cli.command.unwrap_or(Command::Run(cli.run)) {
            Command::Run(run) => run.settings(&Operator::new("operator")),
            _ => panic!("not a run"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let settings = [
            Setting::new("size", "NUMBER", "Number of items per page"),
            Setting::switch("fast", "Use the fast algorithm").rare(),
        ];
        Cli::of(&Operator::new("operator").settings(settings)).debug_assert();
    }

    #[test]
    fn run_is_the_default_and_both_take_the_same_flags() {
        assert_eq!(
            settings(&["--leader-elect", "-n", "a"]),
            settings(&["run", "--leader-elect", "--namespace=a"])
        );
    }

    #[test]
    fn users_n21_leader_election_takes_true_and_false_as_in_controller_runtime() {
        let elects = |words: &[&str]| settings(words).election.is_some();
        assert!(elects(&["--leader-elect"]) && elects(&["--leader-elect=true"]));
        assert!(!elects(&[]) && !elects(&["--leader-elect=false"]));
        let error = Cli::try_parse_from(["operator", "--leader-elect=maybe"]).unwrap_err().to_string();
        assert!(error.contains("maybe") && error.contains("use true or false"), "{error}");
    }

    #[test]
    fn the_workers_flag_takes_precedence_over_the_operator() {
        let workers = |words: &[&str], operator: &Operator| {
            let cli = Cli::try_parse_from([&["operator"], words].concat()).unwrap();
            cli.run.settings(operator).workers
        };
        let own = Operator::new("operator").workers(7);
        assert_eq!(workers(&[], &Operator::new("operator")), 16);
        assert_eq!(workers(&[], &own), 7);
        assert_eq!(workers(&["--workers=3"], &own), 3);
    }

    #[test]
    fn health_and_metrics_share_a_server_unless_they_have_different_addresses() {
        let shared: SocketAddr = "0.0.0.0:9000".parse().unwrap();
        assert_eq!(settings(&["--metrics-bind-address=:9000"]).admin, [shared].into());
        assert_eq!(
            settings(&["--metrics-bind-address=:9000", "--health-probe-bind-address=:9001"]).admin.len(),
            2
        );
        let health_only = settings(&["--metrics-bind-address=0", "--health-probe-bind-address=:9000"]);
        assert_eq!(health_only.admin, [shared].into());
        assert!(settings(&["--metrics-bind-address=0"]).admin.is_empty());
    }

    #[test]
    fn seam_m13_secure_metrics_leave_health_on_a_plain_port_of_its_own() {
        let here = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deployed = settings(&[
            "--metrics-secure",
            "--metrics-bind-address=:8443",
            "--health-probe-bind-address=:8081",
        ]);
        assert_eq!(deployed.secure_metrics, Some("0.0.0.0:8443".parse().unwrap()));
        assert_eq!(deployed.admin, ["0.0.0.0:8081".parse().unwrap()].into());
        let local = settings(&["--metrics-secure=true"]);
        assert_eq!((local.secure_metrics, local.admin), (Some(here(8080)), [here(8081)].into()));
        let plain = settings(&["--metrics-secure=false"]);
        assert_eq!((plain.secure_metrics, plain.admin), (None, [here(8080)].into()));
        let none = settings(&["--metrics-secure", "--metrics-bind-address=0"]);
        assert_eq!((none.secure_metrics, none.admin), (None, [].into()));
    }

    #[test]
    fn seam_m14_the_number_of_objects_with_metrics_of_their_own_is_a_flag() {
        let limit = |words: &[&str]| settings(words).metrics_owner_limit;
        assert_eq!(limit(&[]), Settings::default().metrics_owner_limit);
        assert_eq!((limit(&[]), limit(&["--metrics-owner-limit=20000"])), (1000, 20000));
        assert_eq!(limit(&["--metrics-owner-limit=0"]), 0);
    }

    #[test]
    fn namespaces_are_repeated_or_separated_by_commas_and_an_empty_one_is_none() {
        let names = |args: &[&str]| settings(args).namespaces.into_iter().collect::<Vec<_>>();
        assert_eq!(names(&["-n", "a", "-n", "b"]), ["a", "b"]);
        assert_eq!(names(&["-n", "a,b"]), ["a", "b"]);
        assert!(names(&["-n", ""]).is_empty());
    }

    #[test]
    fn the_webhook_name_flag_can_be_repeated() {
        let names = settings(&["--webhook-name=localhost,127.0.0.1", "--webhook-name=me"]).webhook_names;
        assert_eq!(names, ["localhost", "127.0.0.1", "me"].map(str::to_owned).into());
    }

    #[test]
    fn an_invalid_flag_is_refused_with_a_remedy() {
        for (args, remedy) in [
            (["--metrics-bind-address=8080"], ":8080 for all"),
            (["--metrics-bind-address=:many"], ":8080 for all"),
            (["--workers=0"], "from 1 up"),
        ] {
            let error = Cli::try_parse_from([&["operator"], &args[..]].concat()).unwrap_err();
            assert!(error.to_string().contains(remedy), "{error}");
        }
    }
}
