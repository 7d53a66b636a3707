//! An operator as a program of its own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::metrics::is_idle;
use crate::error::{Error, Result};
use crate::eventually::eventually;

/// A child process. It ends with the test, however the test ends.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Program {
    child: Child,
    /// The first screen of the program.
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
            .spawn()
            .map_err(Error::file(program))?;
        let stderr = child.stderr.take().ok_or_else(|| failed("no standard error"))?;
        let mut lines = BufReader::new(stderr).lines();
        let mut program = Self { child, facts: BTreeMap::new() };
        loop {
            let line = lines.next().ok_or_else(|| failed(format!("ended after {:?}", program.facts)))?;
            let line = line.map_err(failed)?;
            if line.starts_with("Ctrl-C") {
                break;
            }
            let (fact, text) = line.trim().split_once(' ').unwrap_or((&line, ""));
            program.facts.insert(fact.to_owned(), text.trim().to_owned());
        }
        // Read on, or it would have to wait with what it has to say.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(program)
    }

    /// The line of its first screen that begins with this word: `cluster`, `metrics`, `webhooks`, …
    pub fn fact(&self, fact: &str) -> Result<&str> {
        let found = self.facts.get(fact).map(String::as_str);
        found.ok_or_else(|| failed(format!("no {fact} in {:?}", self.facts)))
    }

    /// The answer at its plain port for health and metrics, with its head.
    pub async fn get(&self, path: &str) -> Result<String> {
        let health = self.fact("health")?;
        let admin = health.trim_start_matches("http://").trim_end_matches("/readyz?verbose");
        let ask = async {
            let mut stream = tokio::net::TcpStream::connect(admin).await?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        ask.await.map_err(|error| failed(format!("{path} of {admin}: {error}")))
    }

    /// Waits until it is ready, and this controller of it works.
    pub async fn controller_ready(&self, controller: &str) -> Result<()> {
        let works = format!("[+] controller {controller} ok");
        eventually("the program to be ready", || async {
            let answer = self.get("/readyz?verbose").await.map_err(|error| error.to_string())?;
            if answer.starts_with("HTTP/1.1 200") && answer.contains(&works) { Ok(()) } else { Err(answer) }
        })
        .await
    }

    /// Waits until at least this many reconciles have ended, and none is queued or under way.
    pub async fn idle_after(&self, reconciles: u64) -> Result<()> {
        eventually(format!("{reconciles} reconciles, and then peace"), || async {
            is_idle(&self.get("/metrics").await.map_err(|error| error.to_string())?, reconciles)
        })
        .await
    }

    /// Returns the resident memory of the program, in MB.
    pub fn resident(&self) -> Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let line = line.ok_or_else(|| failed(format!("no VmRSS in {path}")))?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().map_err(failed)?;
        Ok(kilobytes * 1024.0 / 1e6)
    }

    /// The processor time that it has used, in seconds.
    pub fn processor_time(&self) -> Result<f64> {
        // The kernel counts in hundredths of a second there, on all machines that run Kubernetes.
        const TICKS: f64 = 100.0;
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        // The name of the program, in brackets, may hold anything: count from behind it.
        let (_, rest) = stat.rsplit_once(')').ok_or_else(|| failed(format!("no name in {path}")))?;
        let used = rest.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        Ok(used.sum::<Result<f64, _>>().map_err(failed)? / TICKS)
    }

    /// Stops it as a kubelet does. An error if it does not end well.
    pub fn stop(mut self) -> Result<()> {
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let sent = kill.map_err(Error::file("kill"))?;
        if !sent.success() {
            return Err(failed(format!("kill: {sent}")));
        }
        let ended = self.child.wait().map_err(failed)?;
        if ended.code() == Some(0) { Ok(()) } else { Err(failed(ended)) }
    }
}

fn failed(why: impl ToString) -> Error {
    Error::Operator(why.to_string())
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
