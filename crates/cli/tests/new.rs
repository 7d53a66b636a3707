//! `windlass new` and `windlass completions` as commands: the files, the error messages, and that a new
//! project compiles and passes its own checks.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn windlass(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.output().unwrap()
}

const SHOP: [&str; 9] =
    ["new", "operator", "shop", "--group", "shop.example.com", "--version", "v1alpha1", "--kind", "Shop"];

fn shop(directory: &Path, more: &[&str]) -> Output {
    windlass(directory, &[&SHOP[..], more].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn assert_succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn assert_fails(output: &Output, code: i32, names: &[&str]) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for name in names {
        assert!(message.contains(name), "{name:?} is not in: {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

/// All files below, sorted.
fn files(root: &Path) -> Vec<String> {
    fn walk(root: &Path, below: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

#[test]
fn a_project_is_written_completely_and_the_next_commands_are_printed() {
    let place = tempfile::tempdir().unwrap();
    let printed = assert_succeeds(&shop(place.path(), &[]));
    for word in ["created shop", "src/api.rs", "cd shop", "cargo test", "cargo run"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    let expected = [
        ".github/workflows/check.yaml",
        ".gitignore",
        "Cargo.toml",
        "README.md",
        "ci/check",
        "rustfmt.toml",
        "sample.yaml",
        "src/api.rs",
        "src/blueprint.rs",
        "src/lib.rs",
        "src/main.rs",
        "tests/kit/manifests.rs",
        "tests/kit/mod.rs",
        "tests/operator.rs",
    ];
    assert_eq!(files(&place.path().join("shop")), expected);
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["shop"], "drafts are gone");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            |file: &str| fs::metadata(place.path().join("shop").join(file)).unwrap().permissions().mode();
        assert_eq!((mode("ci/check") & 0o111 != 0, mode("README.md") & 0o111), (true, 0));
    }
}

#[test]
fn a_new_project_is_reported_as_json_on_request() {
    let place = tempfile::tempdir().unwrap();
    let printed = assert_succeeds(&shop(place.path(), &["--output", "json", "--path", "deep/down/here"]));
    let event: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&event["event"], &event["path"]), (&"created".into(), &"deep/down/here".into()));
    assert!(place.path().join("deep/down/here/src/main.rs").is_file());
}

#[test]
fn existing_files_are_not_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let mine = place.path().join("shop/mine");
    fs::create_dir(place.path().join("shop")).unwrap();
    fs::write(&mine, "mine").unwrap();
    assert_fails(&shop(place.path(), &[]), 1, &["shop exists and is not empty", "--path"]);
    assert_eq!(
        (files(place.path()), fs::read_to_string(&mine).unwrap()),
        (vec!["shop/mine".into()], "mine".into())
    );
    assert_fails(
        &shop(place.path(), &["--path", "shop/mine"]),
        1,
        &["shop/mine exists and is not a directory"],
    );
    assert_fails(&shop(place.path(), &["--path", "shop/mine/below"]), 1, &["shop/mine/below"]);
    assert_eq!(files(place.path()), ["shop/mine"]);

    // Empty is as good as not there.
    fs::remove_file(&mine).unwrap();
    assert_succeeds(&shop(place.path(), &[]));
    assert!(place.path().join("shop/Cargo.toml").is_file());
}

#[test]
fn a_wrong_value_is_named_with_the_accepted_ones_and_no_file_is_written() {
    let place = tempfile::tempdir().unwrap();
    let with = |name: &str, group: &str, version: &str, kind: &str, more: &[&str]| {
        let all = ["new", "operator", name, "--group", group, "--version", version, "--kind", kind];
        windlass(place.path(), &[&all[..], more].concat())
    };
    let (g, v, k) = ("example.com", "v1", "Shop");
    assert_fails(&with("Web_Shop", g, v, k, &[]), 2, &["Web_Shop", "lower-case letters, digits and dashes"]);
    assert_fails(&with("match", g, v, k, &[]), 2, &["'match'", "keyword", "match-operator"]);
    assert_fails(&with("shop", "example", v, k, &[]), 2, &["'example'", "--group", "shop.example.com"]);
    assert_fails(&with("shop", g, "1.0", k, &[]), 2, &["'1.0'", "--version", "v1alpha1"]);
    assert_fails(&with("shop", g, v, "web-shop", &[]), 2, &["web-shop", "--kind", "CamelCase"]);
    assert_fails(&with("shop", g, v, k, &["--plural", "Shops"]), 2, &["'Shops'", "--plural", "lower-case"]);
    assert_fails(&with("shop", g, v, k, &["--webhook", "convert"]), 2, &["convert", "mutate", "validate"]);
    assert_fails(&with("shop", g, v, k, &["--style", "free"]), 2, &["free", "blueprint", "reconciler"]);
    assert_fails(&with("shop", g, v, k, &["--windlass-version", "new"]), 2, &["new", "0.1"]);
    assert_fails(
        &with("shop", g, v, k, &["--windlass-git", "here"]),
        2,
        &["here", "--windlass-git", "https://"],
    );
    assert_fails(&with("shop", g, v, k, &["--windlass-path", "/no/such"]), 3, &["/no/such", "checkout"]);
    assert_fails(&with("shop", g, v, k, &["--windlass-path", "/"]), 3, &["crates/windlass/Cargo.toml"]);
    assert_fails(
        &windlass(place.path(), &["new", "operator", "shop"]),
        2,
        &["--group", "--version", "--kind"],
    );
    assert_eq!(files(place.path()), Vec::<String>::new());
}

#[test]
fn a_refresh_rewrites_the_files_of_windlass_and_never_those_of_the_user() {
    let place = tempfile::tempdir().unwrap();
    assert_fails(&shop(place.path(), &["--refresh"]), 1, &["no project to refresh", "shop/Cargo.toml"]);
    assert_succeeds(&shop(place.path(), &["--webhook", "validate"]));
    let again = ["--webhook", "validate", "--refresh"];
    assert!(assert_succeeds(&shop(place.path(), &again)).contains("up to date"));

    let [ours, yours] = ["tests/kit/mod.rs", "src/lib.rs"].map(|file| place.path().join("shop").join(file));
    let original = fs::read_to_string(&ours).unwrap();
    fs::write(&ours, "// of an older Windlass\n").unwrap();
    fs::write(&yours, "// mine\n").unwrap();
    let before = files(place.path());
    let printed = assert_succeeds(&shop(place.path(), &again));
    assert!(printed.contains("tests/kit/mod.rs") && !printed.contains("src/lib.rs"), "{printed}");
    assert_eq!(fs::read_to_string(&ours).unwrap(), original);
    assert_eq!(fs::read_to_string(&yours).unwrap(), "// mine\n");
    assert_eq!(files(place.path()), before);

    let other = ["new", "operator", "other", "--group", "a.b", "--version", "v1", "--kind", "Other"];
    let output = windlass(place.path(), &[&other[..], &["--path", "shop", "--refresh"]].concat());
    assert_fails(&output, 1, &["shop/Cargo.toml is not that of \"other\""]);
}

#[test]
fn users_n14_a_project_finds_windlass_from_any_directory_and_with_an_installed_program() {
    let place = tempfile::tempdir().unwrap();
    // As `cargo install` does: the program alone, in a directory that has nothing to do with the checkout.
    let installed = place.path().join("windlass");
    // Copied by another process: a child that another test starts meanwhile would inherit the open file of
    // this one, and a program that is open for writing cannot be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_windlass")).arg(&installed).status().unwrap();
    assert!(copied.success());
    let output = Command::new(&installed).args(SHOP).current_dir(place.path()).output().unwrap();
    assert_succeeds(&output);
    let manifest = fs::read_to_string(place.path().join("shop/Cargo.toml")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for (package, directory) in [("windlass", "windlass"), ("windlass-testenv", "testenv")] {
        let path = root.join("crates").join(directory);
        let dependency = format!("{package} = {{ path = {path:?} }}");
        assert!(manifest.lines().any(|line| line == dependency), "{dependency} is not in: {manifest}");
    }
    let git = ["--path", "other", "--windlass-git", "https://example.com/windlass"];
    assert_succeeds(&shop(place.path(), &git));
    let manifest = fs::read_to_string(place.path().join("other/Cargo.toml")).unwrap();
    assert!(manifest.contains("windlass = { git = \"https://example.com/windlass\" }"), "{manifest}");
}

#[test]
fn help_has_examples() {
    let place = tempfile::tempdir().unwrap();
    let printed = assert_succeeds(&windlass(place.path(), &["new", "operator", "--help"]));
    for word in ["Examples:", "--webhook mutate,validate", "--style reconciler", "--refresh"] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
}

#[test]
fn every_shell_has_completions_of_every_command() {
    let place = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let printed = assert_succeeds(&windlass(place.path(), &["completions", shell]));
        for word in ["windlass", "testenv", "completions", "operator", "refresh"] {
            assert!(printed.contains(word), "{shell}: {word}");
        }
    }
    assert_fails(&windlass(place.path(), &["completions", "cmd"]), 2, &["cmd", "bash", "zsh", "fish"]);
}

/// A place for control planes of our own: on the shared one, another checkout may have installed its notion
/// of our kinds.
struct Planes(tempfile::TempDir);

impl Planes {
    fn new() -> Self {
        // Short: sockets are below it.
        Self(tempfile::Builder::new().prefix("wl").tempdir_in("/tmp").unwrap())
    }
}

impl Drop for Planes {
    fn drop(&mut self) {
        let mut down = Command::new(env!("CARGO_BIN_EXE_windlass"));
        // All that are in this place, and no others.
        let _ = down.args(["down", "--all"]).env("WINDLASS_RUN_DIR", self.0.path()).output();
    }
}

/// A program in a project, as a user calls it: without what the Cargo that runs this test has told it.
fn call(planes: &Planes, project: &Path, program: impl AsRef<OsStr>, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_")) {
        if name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    // K8S_OPENAPI_ENABLED_VERSION stays: without it, k8s-openapi and all that uses it would be built again.
    command.env_remove("LD_LIBRARY_PATH");
    command.env("WINDLASS_RUN_DIR", planes.0.path()).env("CARGO_NET_OFFLINE", "true");
    // Where the workspace is built: a project has the dependencies that Windlass has, with the same profile,
    // and builds only what is new.
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
    command.env("CARGO_INCREMENTAL", "0");
    command.args(arguments).current_dir(project).stdin(Stdio::null()).output().unwrap()
}

/// A project on this checkout, where Cargo finds it again in the next run.
fn project(name: &str, kind: &str, more: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scaffold");
    fs::create_dir_all(&place).unwrap();
    let project = place.join(name);
    let _ = fs::remove_dir_all(&project);
    let group = format!("{name}.example.com");
    let all = ["new", "operator", name, "--group", &group, "--version", "v1", "--kind", kind];
    assert_succeeds(&windlass(&place, &[&all[..], more].concat()));
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\"v1_36\""), "a user has no other way to choose the version of Kubernetes");
    // The versions that this workspace has are there to be built, also without a network.
    fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    project
}

/// The first test writes the manifests, then all that its CI wants passes, and what gets out of date is
/// noticed.
fn works(planes: &Planes, project: &Path, tests: &[&str]) {
    let manifests = ["test", "--test", "operator", "manifests"];
    assert_succeeds(&call(planes, project, "cargo", &manifests));
    let checked = assert_succeeds(&call(planes, project, project.join("ci/check"), &[]));
    for name in tests {
        assert!(checked.contains(&format!("{name} ... ok")), "{name}: {checked}");
    }

    let file = project.join("deploy/rbac.yaml");
    fs::write(&file, "out: of date\n").unwrap();
    let stale = call(planes, project, "cargo", &manifests);
    let printed = text(&stale.stdout) + &text(&stale.stderr);
    assert!(!stale.status.success() && printed.contains("cargo run -- manifests --out deploy"), "{printed}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "out: of date\n", "it is only compared");
    let refresh = ["run", "--quiet", "--", "manifests", "--out", "deploy"];
    assert_succeeds(&call(planes, project, "cargo", &refresh));
    assert_succeeds(&call(planes, project, "cargo", &manifests));
}

/// Both styles in one test: they share a target directory, and would wait for each other.
#[test]
fn new_projects_compile_and_pass_their_own_checks() {
    let planes = Planes::new();
    let shop = project("web-shop", "WebShop", &["--webhook", "mutate,validate"]);
    works(
        &planes,
        &shop,
        &[
            "a_plan_has_a_deployment_and_a_service",
            "the_sample_becomes_ready",
            "an_image_without_a_tag_gets_one",
            "an_image_with_spaces_is_rejected",
            "kit::manifests::the_manifests_are_up_to_date",
        ],
    );
    let census = project("census", "Census", &["--style", "reconciler"]);
    works(
        &planes,
        &census,
        &["a_deployment_as_written_is_as_wanted_and_a_changed_one_is_not", "the_sample_becomes_ready"],
    );
}

#[test]
fn new_projects_are_formatted_whatever_they_are_called() {
    let long = "AnExtraordinarilyLongWindedNameOfAKind";
    for (name, kind) in [("x", "X"), ("a-rather-long-name-for-an-operator-of-some-kind", long)] {
        for style in ["blueprint", "reconciler"] {
            for webhooks in [&["--webhook", "mutate,validate"][..], &["--webhook", "mutate"], &[]] {
                let place = tempfile::tempdir().unwrap();
                let all = ["new", "operator", name, "--group", "a.b", "--version", "v1", "--kind", kind];
                let more = ["--style", style, "--path", "p"];
                assert_succeeds(&windlass(place.path(), &[&all[..], &more, webhooks].concat()));
                let project = place.path().join("p");
                let checked = Command::new("rustfmt")
                    .args(["--check", "--edition", "2024", "src/lib.rs", "src/main.rs", "tests/operator.rs"])
                    .current_dir(&project)
                    .output()
                    .unwrap();
                assert!(checked.status.success(), "{kind} {style}: {}", text(&checked.stdout));
            }
        }
    }
}
