//! Programs of Debian's packages, without installing them.
//!
//! A program that the system has is used. What is missing is fetched once with `apt-get`, which needs no root
//! for this: with package lists of our own, into the project's cache, unpacked there and never configured.
//! Nothing outside the cache changes.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};

use super::process::is_root;

/// The programs, with the package that has each and the directories of it.
const PROGRAMS: [(&str, &str, &[&str]); 7] = [
    ("docker-registry", "docker-registry", &["usr/bin"]),
    ("nginx", "nginx", &["usr/sbin"]),
    ("redis-server", "redis-server", &["usr/bin"]),
    ("redis-cli", "redis-tools", &["usr/bin"]),
    ("postgres", "postgresql", &["usr/lib/postgresql/*/bin"]),
    ("initdb", "postgresql", &["usr/lib/postgresql/*/bin"]),
    ("psql", "postgresql", &["usr/lib/postgresql/*/bin"]),
];

/// Set to anything, the system's own programs are not used.
const IGNORE_SYSTEM: &str = "WINDLASS_TEST_PACKAGES_ONLY";

/// Directories in which the programs are found.
#[derive(Debug)]
pub(crate) struct Packages {
    /// Directory of fetched packages, if any program was missing.
    fetched: Option<PathBuf>,
}

impl Packages {
    /// Finds the programs, and fetches what is missing. Once a process.
    pub(crate) fn get() -> &'static Self {
        static PACKAGES: OnceLock<Result<Packages, String>> = OnceLock::new();
        let found = PACKAGES.get_or_init(|| Self::locate().map_err(|error| format!("{error:#}")));
        found.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    fn locate() -> Result<Self> {
        let on_system = |(program, _, dirs): &(&str, &str, &[&str])| {
            env::var_os(IGNORE_SYSTEM).is_none() && find(Path::new("/"), dirs, program).is_some()
        };
        if PROGRAMS.iter().all(on_system) {
            return Ok(Self { fetched: None });
        }
        let cache = cache()?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        // Two test programs may want to fetch at the same time.
        let lock = File::create(cache.join("lock"))?;
        lock.lock()?;
        let root = cache.join("root");
        let fetched = |(program, _, dirs): &(&str, &str, &[&str])| find(&root, dirs, program).is_some();
        if !PROGRAMS.iter().all(|program| on_system(program) || fetched(program)) {
            let mut missing: Vec<&str> = PROGRAMS
                .iter()
                .filter(|program| !on_system(program))
                .map(|(_, package, _)| *package)
                .collect();
            missing.dedup();
            fetch(&cache, &root, &missing).with_context(|| {
                format!("cannot fetch programs for the tests; install them yourself: {}", missing.join(" "))
            })?;
        }
        Ok(Self { fetched: Some(root) })
    }

    /// A program, by its path.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let (_, package, dirs) =
            PROGRAMS.iter().find(|(program, ..)| *program == name).expect("a program of the list");
        let system = env::var_os(IGNORE_SYSTEM).is_none().then_some(Path::new("/"));
        system
            .into_iter()
            .chain(self.fetched.as_deref())
            .find_map(|root| find(root, dirs, name))
            .unwrap_or_else(|| panic!("{name} is not in package {package} any more"))
    }

    /// A command that runs a program with the libraries that were fetched beside it, and with nothing else of
    /// our environment: proxies, authorities and passwords in it would reach the programs too.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.program(name));
        command.env_clear().env("LANG", "C");
        command
            .envs(["PATH", "HOME", "TMPDIR"].into_iter().filter_map(|name| Some((name, env::var_os(name)?))));
        if let Some(libraries) = self.libraries() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }

    /// Returns the directory with the libraries of the fetched packages.
    fn libraries(&self) -> Option<String> {
        let root = self.fetched.as_deref()?;
        let dirs: Vec<String> = ["usr/lib", "lib"]
            .iter()
            .flat_map(|dir| expand(root, &format!("{dir}/*-linux-gnu")))
            .map(|dir| dir.display().to_string())
            .collect();
        (!dirs.is_empty()).then(|| dirs.join(":"))
    }

    /// A file of a package: `etc/nginx/mime.types`.
    pub(crate) fn file(&self, path: &str) -> Option<PathBuf> {
        [Some(Path::new("/")), self.fetched.as_deref()]
            .into_iter()
            .flatten()
            .map(|root| root.join(path))
            .find(|path| path.exists())
    }
}

/// `$XDG_CACHE_HOME/windlass/packages`, for this release of the distribution.
///
/// Root's home is closed to others, and PostgreSQL, which does not run as root, has to reach its programs:
/// root's packages are in `/var/tmp`.
fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("unknown", |value| value.trim_matches('"')).to_owned()
    };
    let name = format!("{}-{}-{}", field("ID="), field("VERSION_ID="), env::consts::ARCH);
    let base = base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("windlass/packages");
    if !is_root() || base.ancestors().all(|dir| !dir.exists() || mode(dir).is_ok_and(|mode| mode & 0o1 != 0))
    {
        return Ok(base.join(name));
    }
    let base = PathBuf::from("/var/tmp/windlass-packages");
    if !base.exists() {
        fs::DirBuilder::new().mode(0o755).create(&base)?;
    }
    // Anybody may make a directory of this name, and we run what is in it.
    let ours = fs::symlink_metadata(&base)?;
    ensure!(
        ours.is_dir() && ours.uid() == 0 && ours.mode() & 0o022 == 0,
        "{} is not root's own; remove it",
        base.display()
    );
    Ok(base.join(name))
}

fn mode(path: &Path) -> Result<u32> {
    Ok(fs::metadata(path)?.mode())
}

fn fetch(cache: &Path, root: &Path, missing: &[&str]) -> Result<()> {
    eprintln!("fetching {} once, into {}", missing.join(", "), cache.display());
    // Lists of our own: updating the system's takes root, and those it has may be of long ago.
    let state = cache.join("apt");
    for dir in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(state.join(dir))?;
    }
    let apt = |program: &str, arguments: &[&str], dir: &Path| -> Result<String> {
        let set = |key: &str, dir: &str| format!("{key}={}", state.join(dir).display());
        let output = Command::new(program)
            .args(["-q", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User="])
            .args(["-o", &set("Dir::State::Lists", "lists"), "-o", &set("Dir::Cache::Archives", "archives")])
            .args(["-o", &set("Dir::Cache::pkgcache", "pkgcache.bin")])
            .args(["-o", &set("Dir::Cache::srcpkgcache", "srcpkgcache.bin")])
            .args(arguments)
            .current_dir(dir)
            .output()
            .with_context(|| format!("cannot run {program}"))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} {}: {}: {error}", arguments.join(" "), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    apt("apt-get", &["update"], cache)?;
    let server = newest_postgresql(&apt("apt-cache", &["depends", "postgresql"], cache)?)?;
    let client = server.replace("postgresql-", "postgresql-client-");
    let wanted: Vec<&str> = missing
        .iter()
        .flat_map(
            |name| if *name == "postgresql" { vec![server.as_str(), client.as_str()] } else { vec![*name] },
        )
        .collect();
    // What installing them would bring along: the libraries that this system lacks.
    let uris = apt(
        "apt-get",
        &[&["install", "-y", "--print-uris", "--reinstall", "--no-install-recommends"], wanted.as_slice()]
            .concat(),
        cache,
    )?;
    let names: Vec<String> = uris
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter(|file| Path::new(file).extension().is_some_and(|extension| extension == "deb"))
        .map(|file| file.split('_').next().unwrap_or(file).to_owned())
        .collect();
    ensure!(!names.is_empty(), "apt-get knows of no packages to fetch: {uris}");
    let debs = cache.join("debs");
    let fresh = cache.join("root.new");
    for dir in [&debs, &fresh] {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir)?;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    apt("apt-get", &[&["download"], names.as_slice()].concat(), &debs)?;
    for deb in fs::read_dir(&debs)? {
        let deb = deb?.path();
        let status = Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&fresh).status()?;
        ensure!(status.success(), "dpkg-deb cannot unpack {}", deb.display());
    }
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::rename(&fresh, root)?;
    // Both are large, and of no use any more.
    fs::remove_dir_all(&debs)?;
    fs::remove_dir_all(&state)?;
    for (program, package, dirs) in PROGRAMS {
        if missing.contains(&package) && find(root, dirs, program).is_none() {
            bail!("package {package} came without {program}");
        }
    }
    Ok(())
}

/// The package with the server itself, of which `postgresql` is only the name: `postgresql-15`.
fn newest_postgresql(depends: &str) -> Result<String> {
    let of_version =
        |word: &&str| word.strip_prefix("postgresql-").is_some_and(|version| version.parse::<u32>().is_ok());
    depends.split_whitespace().find(of_version).map(str::to_owned).context("apt-cache knows of no PostgreSQL")
}

fn find(root: &Path, dirs: &[&str], program: &str) -> Option<PathBuf> {
    dirs.iter().flat_map(|dir| expand(root, dir)).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// The directories that a pattern with at most one `*` stands for, the last first: the newest version.
fn expand(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![root.join(pattern)] };
    let (dir, rest) = (root.join(before), after.split_once('/'));
    let (suffix, below) = rest.unwrap_or((after, ""));
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
        .map(|entry| entry.path().join(below))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found.reverse();
    found
}
