//! Building the control plane with the user's Go.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::module;
use crate::dirs;
use crate::error::{Error, Result};
use crate::progress::Reporter;

/// The names that the one binary goes by; it does what its name says.
const NAMES: &[&str] =
    &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl", "supervise"];

const STAGED: &str = "staged-";
const UNPACKED: &str = "module-";

/// Builds the multi-call binary into `cache/<digest>`, once for all callers.
///
/// Several processes may call this at the same moment: a file lock lets one
/// build, and the others then find its result. The directory appears by a rename,
/// so it is there whole or not at all. The kernel lets go of the lock with the
/// process that held it, so a killed build leaves nothing that blocks the next.
pub(super) fn build_once(cache: &Path, force: bool, reporter: &Reporter) -> Result<PathBuf> {
    let target = cache.join(module::id());
    if !force && is_complete(&target) {
        return Ok(target);
    }
    let _lock = lock(cache, reporter)?;
    if !force && is_complete(&target) {
        return Ok(target);
    }
    reporter.line(format!(
        "building Kubernetes {} with KWOK into {} (once; about 6 minutes on two cores)",
        module::kubernetes_version(),
        target.display()
    ));
    let began = Instant::now();
    let go = Go::find(cache)?;
    go.download(reporter)?;
    let staged = go.stage()?;
    let binary = staged.join(NAMES[0]);
    go.compile(".", &binary, reporter, began)?;
    for name in &NAMES[1..] {
        let link = staged.join(name);
        fs::hard_link(&binary, &link).map_err(Error::file(&link))?;
    }
    put_in_place(&staged, &target)?;
    reporter.line(format!("built the control plane in {} s", began.elapsed().as_secs()));
    Ok(target)
}

/// Builds the supervisor alone, for binaries that someone else built: seconds.
pub(super) fn build_supervisor(cache: &Path, reporter: &Reporter) -> Result<PathBuf> {
    let full = cache.join(module::id()).join("supervise");
    if full.is_file() {
        return Ok(full);
    }
    let target = cache.join(format!("supervise-{}", module::id()));
    let program = target.join("supervise");
    let _lock = lock(cache, reporter)?;
    if program.is_file() {
        return Ok(program);
    }
    let go = Go::find(cache)?;
    let staged = go.stage()?;
    go.compile("./cmd/supervise", &staged.join("supervise"), reporter, Instant::now())?;
    put_in_place(&staged, &target)?;
    Ok(program)
}

pub(super) fn is_complete(dir: &Path) -> bool {
    NAMES.iter().all(|name| dir.join(name).is_file())
}

fn put_in_place(staged: &Path, target: &Path) -> Result<()> {
    if target.exists() {
        fs::remove_dir_all(target).map_err(Error::file(target))?;
    }
    fs::rename(staged, target).map_err(Error::file(target))
}

fn lock(cache: &Path, reporter: &Reporter) -> Result<File> {
    fs::create_dir_all(cache).map_err(Error::file(cache))?;
    let path = cache.join("build.lock");
    let file = dirs::lock_file(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            reporter.line("another process is building the control plane: waiting for it");
            file.lock().map_err(Error::file(&path))?;
        }
        Err(TryLockError::Error(error)) => return Err(Error::file(&path)(error)),
    }
    sweep(cache);
    Ok(file)
}

/// Removes the remains of killed builds. The holder of the lock is the only builder.
fn sweep(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if [STAGED, UNPACKED].iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes())) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The user's Go, and the unpacked module.
struct Go {
    module: tempfile::TempDir,
    cache: PathBuf,
}

impl Go {
    fn find(cache: &Path) -> Result<Self> {
        let needed = module::go_version().to_owned();
        let found = match Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::GoMissing { needed });
            }
            Err(error) => return Err(Error::file("go")(error)),
            Ok(output) => String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("go").to_owned(),
        };
        if version(&found) < version(&needed) {
            return Err(Error::GoTooOld { found, needed });
        }
        let dir = tempfile::Builder::new().prefix(UNPACKED).tempdir_in(cache).map_err(Error::file(cache))?;
        module::unpack(dir.path())?;
        Ok(Self { module: dir, cache: cache.to_owned() })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("go");
        command
            .args(arguments)
            .current_dir(self.module.path())
            // What the user has set for other projects must not change this build.
            .env("GOFLAGS", "-mod=readonly")
            .env("GOWORK", "off")
            .env("GOTOOLCHAIN", "local")
            .env("GO111MODULE", "on")
            .env("CGO_ENABLED", "0")
            .stdin(Stdio::null());
        if env::var_os("HOME").is_none() {
            // Go derives both from HOME.
            command.env("GOPATH", self.cache.join("go")).env("GOCACHE", self.cache.join("go-build"));
        }
        command
    }

    fn download(&self, reporter: &Reporter) -> Result<()> {
        reporter.line("downloading Go modules");
        let output = self.command(&["mod", "download"]).output().map_err(Error::file("go"))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(failure(&text, &self.cache, |output| Error::Download { output }))
    }

    /// A directory beside the final place, so that the last step is a rename.
    fn stage(&self) -> Result<PathBuf> {
        let staged = self.cache.join(format!("{STAGED}{}", std::process::id()));
        if staged.exists() {
            fs::remove_dir_all(&staged).map_err(Error::file(&staged))?;
        }
        fs::create_dir_all(&staged).map_err(Error::file(&staged))?;
        Ok(staged)
    }

    fn compile(&self, package: &str, output: &Path, reporter: &Reporter, began: Instant) -> Result<()> {
        let total = self.stale(package);
        let flags = format!("-s -w {}", version_flags());
        let mut child = self
            .command(&["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", &flags, "-o"])
            .arg(output)
            .arg(package)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::file("go"))?;
        // `go build -v` names each package when it is compiled, and prints errors
        // to the same stream.
        let mut done = 0;
        let mut last_lines = VecDeque::new();
        if let Some(stderr) = child.stderr.take() {
            for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
                done += 1;
                reporter.building(done.min(total), total.max(1), began.elapsed());
                if last_lines.len() == 30 {
                    last_lines.pop_front();
                }
                last_lines.push_back(line);
            }
        }
        let status = child.wait().map_err(Error::file("go"))?;
        if status.success() {
            return Ok(());
        }
        let text = last_lines.into_iter().collect::<Vec<_>>().join("\n");
        Err(failure(&text, &self.cache, |output| Error::BuildFailed { output }))
    }

    /// The number of packages to compile, without those in Go's cache.
    fn stale(&self, package: &str) -> u64 {
        let output =
            self.command(&["list", "-deps", "-trimpath", "-f", "{{if .Stale}}x{{end}}", package]).output();
        output.map_or(0, |output| String::from_utf8_lossy(&output.stdout).matches('x').count() as u64)
    }
}

/// Distinguishes a full disk from other errors. Go reports it only as text.
fn failure(text: &str, cache: &Path, otherwise: impl FnOnce(String) -> Error) -> Error {
    if text.contains("no space left on device") {
        return Error::DiskFull { path: cache.to_owned() };
    }
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(15)..].join("\n");
    otherwise(end)
}

/// Linker flags with the version: without them the server does not know its version, and clients refuse it.
fn version_flags() -> String {
    let version = module::kubernetes_version();
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or("1"), numbers.next().unwrap_or("0"));
    ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
        .iter()
        .map(|package| {
            format!(
                "-X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
                 -X {package}.gitTreeState=clean"
            )
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// `1.26.3` or `1.27rc1` as numbers that compare.
fn version(text: &str) -> Vec<u64> {
    text.split('.')
        .map(|part| part.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0))
        .chain(std::iter::repeat(0))
        .take(3)
        .collect()
}

/// The age of `path`, for `status`.
pub(super) fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_compare_as_numbers() {
        assert!(version("1.9") < version("1.26.0"));
        assert!(version("1.26.8") > version("1.26.0"));
        assert!(version("1.27rc1") > version("1.26.0"));
        assert_eq!(version("1.26"), version("1.26.0"));
        assert!(version("nonsense") < version("1.26"));
    }

    #[test]
    fn a_full_disk_is_told_from_a_failed_build() {
        let at = Path::new("/cache");
        let full = failure("write /x: no space left on device", at, |output| Error::BuildFailed { output });
        assert!(matches!(full, Error::DiskFull { .. }), "{full}");
        let failed = failure("main.go:3: syntax error", at, |output| Error::BuildFailed { output });
        assert!(failed.to_string().contains("main.go:3: syntax error"), "{failed}");
    }

    #[test]
    fn both_version_packages_are_set() {
        let flags = version_flags();
        assert_eq!(flags.matches("gitVersion=v1.").count(), 2, "{flags}");
    }
}
