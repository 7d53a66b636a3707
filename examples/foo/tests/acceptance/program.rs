//! The operator as a program of its own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_testenv::eventually;

use crate::world::is_idle;

pub(crate) struct Program {
    child: Child,
    /// Where health and metrics are.
    admin: String,
}

impl Program {
    /// Starts it, and waits for its first screen.
    pub(crate) fn start(kubeconfig: &Path, args: &[&str], env: &[(&str, &str)]) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_foo"))
            .args(args)
            .args(["--metrics-bind-address=127.0.0.1:0", "--log-format=text", "--log-level=warn"])
            .envs(env.iter().copied())
            .env("KUBECONFIG", kubeconfig)
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("its standard error")?).lines();
        let mut screen = Vec::new();
        let admin = loop {
            let line = said.next().with_context(|| format!("it ended after saying {screen:?}"))??;
            if let Some(("", address)) = line.trim().split_once("metrics    http://") {
                break address.trim_end_matches("/metrics").to_owned();
            }
            screen.push(line);
        };
        // Read on, or it would have to wait with what it has to say.
        std::thread::spawn(move || said.map_while(Result::ok).for_each(drop));
        Ok(Self { child, admin })
    }

    async fn get(&self, path: &str) -> Result<String> {
        let mut stream = tokio::net::TcpStream::connect(&self.admin).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Waits until it is ready, and its controller works.
    pub(crate) async fn ready(&self) -> Result<()> {
        let ready = eventually("the program to be ready", || async {
            let answer = self.get("/readyz?verbose").await.map_err(|error| error.to_string())?;
            if answer.starts_with("HTTP/1.1 200") && answer.contains("[+] controller foo ok") {
                Ok(())
            } else {
                Err(answer)
            }
        });
        Ok(ready.await?)
    }

    /// Waits until at least so many reconciles have ended, and none is queued or under way.
    pub(crate) async fn idle_after(&self, reconciles: u64) -> Result<()> {
        let idle = eventually(format!("{reconciles} reconciles, and then peace"), || async {
            is_idle(&self.get("/metrics").await.map_err(|error| error.to_string())?, reconciles)
        });
        Ok(idle.await?)
    }

    /// The memory that it has, in MB.
    pub(crate) fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0 / 1e6)
    }

    /// Stops it as a kubelet does, and wants that to go well.
    pub(crate) fn stop(mut self) -> Result<()> {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill: {sent}");
        let ended = self.child.wait()?;
        ensure!(ended.code() == Some(0), "{ended}");
        Ok(())
    }
}

/// Whatever a test does, it leaves no process behind.
impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
