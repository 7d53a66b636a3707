//! The files of a project with their texts, filled in from templates. Nothing here touches a disk.

use super::args::{Operator, Style, Webhook};
use super::names::Plural;
use super::template::Values;
use crate::failure::Failure;

/// Source of the Windlass crates that a project depends on.
#[derive(Debug)]
pub(crate) enum Source {
    /// A release in a registry.
    Version(String),
    /// A checkout at this absolute path.
    Checkout(String),
    /// A Git repository with this URL.
    Git(String),
}

/// Owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user: the file is written once.
    User,
    /// Windlass: `--refresh` rewrites the file.
    Windlass,
}

/// A file of a project.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    pub(crate) owner: Owner,
    pub(crate) executable: bool,
    pub(crate) text: String,
}

/// A project: the values and flags for its templates.
#[derive(Debug)]
pub(crate) struct Project {
    style: Style,
    webhooks: bool,
    values: Values,
}

/// Returns the text of a file below `templates/operator`.
macro_rules! template {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/operator/", $name))
    };
}

impl Project {
    pub(crate) fn new(args: &Operator, source: Source) -> Result<Self, Failure> {
        let plural = args.plural.clone().unwrap_or_else(|| Plural::of(&args.kind));
        let has = |webhook| args.webhook.contains(&webhook);
        let (mutate, validate) = (has(Webhook::Mutate), has(Webhook::Validate));
        let webhooks = mutate || validate;
        let dependency = |directory: &str| dependency(&source, directory);
        let values = vec![
            ("name", args.name.to_string()),
            ("crate", args.name.replace('-', "_")),
            ("group", args.group.to_string()),
            ("version", args.version.to_string()),
            ("kind", args.kind.to_string()),
            ("singular", args.kind.to_ascii_lowercase()),
            ("plural", plural.to_string()),
            ("windlass", dependency("windlass")?),
            ("windlass-operator", dependency("operator")?),
            ("windlass-runtime", dependency("runtime")?),
            ("windlass-testenv", dependency("testenv")?),
            ("windlass-release", env!("CARGO_PKG_VERSION").to_owned()),
            ("command", command(args, &plural, mutate, validate)),
        ];
        let flags = vec![
            ("blueprint", args.style == Style::Blueprint),
            ("reconciler", args.style == Style::Reconciler),
            ("mutate", mutate),
            ("validate", validate),
            ("both webhooks", mutate && validate),
            ("only mutate", mutate && !validate),
            ("only validate", validate && !mutate),
            ("webhooks", webhooks),
            ("checkout", matches!(source, Source::Checkout(_))),
        ];
        Ok(Self { style: args.style, webhooks, values: Values { values, flags } })
    }

    /// Returns all files, in the order in which to read them.
    pub(crate) fn files(&self) -> Vec<File> {
        let file = |path, about, owner, template: &str| File {
            path,
            about,
            owner,
            executable: path == "ci/check",
            text: self.values.fill(template),
        };
        let yours = |path, about, template| file(path, about, Owner::User, template);
        let ours = |path, about, template| file(path, about, Owner::Windlass, template);
        let mut files = vec![
            yours("README.md", "how to run, test and install it", template!("README.md")),
            yours("Cargo.toml", "dependencies", template!("Cargo.toml.in")),
            yours("src/api.rs", "the kind: spec and status", template!("src/api.rs")),
        ];
        files.push(match self.style {
            Style::Blueprint => yours(
                "src/blueprint.rs",
                "the plan: the objects, and their order",
                template!("src/blueprint.rs"),
            ),
            Style::Reconciler => yours(
                "src/controller.rs",
                "the controller: the reconcile function",
                template!("src/controller.rs"),
            ),
        });
        if self.webhooks {
            files.push(yours("src/webhooks.rs", "admission webhooks", template!("src/webhooks.rs")));
        }
        files.extend([
            yours("src/lib.rs", "the operator: kind, controller and webhooks", template!("src/lib.rs")),
            ours("src/main.rs", "the program: calls the operator", template!("src/main.rs")),
            yours("tests/operator.rs", "tests on a real control plane", template!("tests/operator.rs")),
            ours(
                "tests/kit/mod.rs",
                "test support: the operator on a control plane",
                template!("tests/kit/mod.rs"),
            ),
            ours(
                "tests/kit/manifests.rs",
                "a test that deploy/ is up to date",
                template!("tests/kit/manifests.rs"),
            ),
            yours("sample.yaml", "a sample object", template!("sample.yaml")),
            ours("ci/check", "all checks: format, lints, manifests, tests", template!("ci/check")),
            ours(".github/workflows/check.yaml", "the same checks on GitHub", template!("github/check.yaml")),
        ]);
        if self.webhooks {
            files.push(yours(
                ".cargo/config.toml",
                "environment of `cargo run`",
                template!("cargo/config.toml"),
            ));
        }
        files.extend([
            yours("rustfmt.toml", "format of the code", template!("rustfmt.toml")),
            yours(".gitignore", "files that Git ignores", template!("gitignore")),
        ]);
        files
    }
}

/// Returns the value of a dependency in `Cargo.toml`.
fn dependency(source: &Source, directory: &str) -> Result<String, Failure> {
    match source {
        Source::Version(version) => Ok(format!("{version:?}")),
        Source::Git(url) => Ok(format!("{{ git = {url:?} }}")),
        Source::Checkout(root) => {
            // A JSON string is a TOML string too.
            let path = serde_json::to_string(&format!("{root}/crates/{directory}"))
                .map_err(|error| Failure::Running(error.to_string()))?;
            Ok(format!("{{ path = {path} }}"))
        }
    }
}

/// Returns the command that creates this project, without its directory and the source of Windlass.
fn command(args: &Operator, plural: &Plural, mutate: bool, validate: bool) -> String {
    let mut command = format!(
        "windlass new operator {} --group {} --version {} --kind {} --plural {}",
        &*args.name, &*args.group, &*args.version, &*args.kind, &**plural
    );
    if args.style == Style::Reconciler {
        command.push_str(" --style reconciler");
    }
    let webhooks: Vec<&str> = [(mutate, "mutate"), (validate, "validate")]
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, name)| *name)
        .collect();
    if !webhooks.is_empty() {
        command.push_str(" --webhook ");
        command.push_str(&webhooks.join(","));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::super::args::New;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        new: New,
    }

    fn files(more: &[&str]) -> Vec<File> {
        let words =
            ["new", "operator", "shop", "--group", "shop.example.com", "--version", "v1", "--kind", "Shop"];
        let Cli { new: New::Operator(args) } = Cli::try_parse_from(words.iter().chain(more)).unwrap();
        Project::new(&args, Source::Version("0.1".into())).unwrap().files()
    }

    fn paths(files: &[File]) -> Vec<&'static str> {
        files.iter().map(|file| file.path).collect()
    }

    const VARIANTS: [&[&str]; 6] = [
        &[],
        &["--webhook", "mutate"],
        &["--webhook", "validate"],
        &["--webhook", "mutate,validate"],
        &["--style", "reconciler"],
        &["--style", "reconciler", "--webhook", "validate,mutate"],
    ];

    #[test]
    fn a_project_has_the_files_of_its_style_and_webhooks() {
        let plain = [
            "README.md",
            "Cargo.toml",
            "src/api.rs",
            "src/blueprint.rs",
            "src/lib.rs",
            "src/main.rs",
            "tests/operator.rs",
            "tests/kit/mod.rs",
            "tests/kit/manifests.rs",
            "sample.yaml",
            "ci/check",
            ".github/workflows/check.yaml",
            "rustfmt.toml",
            ".gitignore",
        ];
        assert_eq!(paths(&files(&[])), plain);
        let hooked = paths(&files(&["--style", "reconciler", "--webhook", "mutate"]));
        for path in ["src/controller.rs", "src/webhooks.rs", ".cargo/config.toml"] {
            assert!(hooked.contains(&path), "{hooked:?}");
        }
        assert!(!hooked.contains(&"src/blueprint.rs"));
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        for variant in VARIANTS {
            for file in files(variant) {
                assert!(!file.text.contains("{{"), "{variant:?} {}:\n{}", file.path, file.text);
                assert!(
                    file.text.ends_with('\n') && !file.text.ends_with("\n\n"),
                    "{variant:?} {}",
                    file.path
                );
                assert!(!file.text.contains("\n\n\n"), "{variant:?} {}:\n{}", file.path, file.text);
            }
        }
    }

    #[test]
    fn files_that_are_windlasss_say_so_and_the_readme_lists_them() {
        for variant in VARIANTS {
            let files = files(variant);
            let readme = &files.iter().find(|file| file.path == "README.md").unwrap().text;
            for file in &files {
                let says = file.text.contains("Written by `windlass new`");
                assert_eq!(says, file.owner == Owner::Windlass, "{}", file.path);
                if file.owner == Owner::Windlass {
                    assert!(readme.contains(&format!("`{}`", file.path)), "{}", file.path);
                }
            }
        }
    }

    #[test]
    fn the_command_that_made_it_is_in_the_readme() {
        let files = files(&["--webhook", "validate,mutate,mutate", "--style", "reconciler"]);
        let command = "windlass new operator shop --group shop.example.com --version v1 --kind Shop --plural shops \
                       --style reconciler --webhook mutate,validate";
        assert!(files[0].text.contains(command), "{}", files[0].text);
    }

    #[test]
    fn windlass_is_found_in_a_registry_a_repository_or_a_checkout_with_any_path() {
        let version = dependency(&Source::Version("0.1".into()), "windlass").unwrap();
        let path = dependency(&Source::Checkout("/a \"b\"".into()), "runtime").unwrap();
        let git = dependency(&Source::Git("https://example.com/w".into()), "pki").unwrap();
        assert_eq!(git, r#"{ git = "https://example.com/w" }"#);
        assert_eq!((&*version, &*path), ("\"0.1\"", r#"{ path = "/a \"b\"/crates/runtime" }"#));
    }
}
