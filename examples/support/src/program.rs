//! An operator as a program of its own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_testenv::eventually;

use crate::counts::is_idle;

/// A child process. Whatever a test does, it does not outlive it.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Program {
    child: Child,
    /// What its first screen says.
    facts: BTreeMap<String, String>,
}

impl Program {
    /// Starts it (`env!("CARGO_BIN_EXE_…")` says where it is), and waits for its first screen.
    pub fn start(program: &str, kubeconfig: &Path, args: &[&str], env: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .args(["--metrics-bind-address=127.0.0.1:0", "--log-format=text", "--log-level=warn"])
            .envs(env.iter().copied())
            .env("KUBECONFIG", kubeconfig)
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("its standard error")?).lines();
        let mut facts = BTreeMap::new();
        loop {
            let line = said.next().with_context(|| format!("it ended after saying {facts:?}"))??;
            if line.starts_with("Ctrl-C") {
                break;
            }
            let (fact, text) = line.trim().split_once(' ').unwrap_or((&line, ""));
            facts.insert(fact.to_owned(), text.trim().to_owned());
        }
        // Read on, or it would have to wait with what it has to say.
        std::thread::spawn(move || said.map_while(Result::ok).for_each(drop));
        Ok(Self { child, facts })
    }

    /// What its first screen says of this: `cluster`, `metrics`, `webhooks`, …
    pub fn fact(&self, fact: &str) -> Result<&str> {
        self.facts.get(fact).map(String::as_str).with_context(|| format!("no {fact} in {:?}", self.facts))
    }

    /// What it answers at its port for health and metrics, head and all.
    pub async fn get(&self, path: &str) -> Result<String> {
        let metrics = self.fact("metrics")?;
        let admin = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
        let mut stream = tokio::net::TcpStream::connect(admin).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Waits until it is ready, and this controller of it works.
    pub async fn ready(&self, controller: &str) -> Result<()> {
        let works = format!("[+] controller {controller} ok");
        let ready = eventually("the program to be ready", || async {
            let answer = self.get("/readyz?verbose").await.map_err(|error| error.to_string())?;
            if answer.starts_with("HTTP/1.1 200") && answer.contains(&works) { Ok(()) } else { Err(answer) }
        });
        Ok(ready.await?)
    }

    /// Waits until at least so many reconciles have ended, and none is queued or under way.
    pub async fn idle_after(&self, reconciles: u64) -> Result<()> {
        let idle = eventually(format!("{reconciles} reconciles, and then peace"), || async {
            is_idle(&self.get("/metrics").await.map_err(|error| error.to_string())?, reconciles)
        });
        Ok(idle.await?)
    }

    /// The memory that it has, in MB.
    pub fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0 / 1e6)
    }

    /// The time of processors that it has used, in seconds.
    pub fn processor_time(&self) -> Result<f64> {
        // The kernel counts in hundredths of a second there, on all machines that run Kubernetes.
        const TICKS: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in brackets, may hold anything: count from behind it.
        let (_, rest) = stat.rsplit_once(')').context("no name")?;
        let used = rest.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        Ok(used.sum::<Result<f64, _>>()? / TICKS)
    }

    /// Stops it as a kubelet does, and wants that to go well.
    pub fn stop(mut self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill: {sent}");
        let ended = self.child.wait()?;
        ensure!(ended.code() == Some(0), "{ended}");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
