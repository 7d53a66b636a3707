//! Mutates every property of a kind, and sees whether the operator answers.
//!
//! A field that nobody tried is a field that may do nothing, hang, or leave something behind when it is taken
//! away again. The schema of a CRD has all of them, so all of them can be tried.
//!
//! # What it promises
//!
//! For each property of the schema there are cases, generated and always the same:
//!
//! | id | the owner gets |
//! | --- | --- |
//! | `spec.replicas=change` | one valid value after the other, then its first manifest again |
//! | `spec.cache=added` | an object with its required fields only, then its first manifest again |
//! | `spec.replicas=invalid:-1` | a value that the schema or common sense forbids, then its first manifest again |
//! | `spec.replicas=removed` | a manifest without the property, then its first manifest again |
//!
//! Each case ends in one of these findings:
//!
//! | finding | |
//! | --- | --- |
//! | `refused` | the API server or a webhook refuses it, and names the field and the value |
//! | `effect` | the objects of the owner differ from those before |
//! | `reported` | the status, or a warning of admission, names the field and the value |
//! | `taken` | a value that looks invalid has an effect and the owner is ready: a free text |
//! | `unchanged` | nothing changes, and nothing should: an empty object, a removed default |
//! | `listed`, `defect`, `unjudged` | the file of exceptions has it, with the reason |
//! | `IGNORED` | the owner is ready, and nothing changed |
//! | `UNCLEAR` | it is refused or fails without a message that names the field and the value |
//! | `HANG`, `HOT-LOOP`, `CRASH` | the status does not follow, the operator writes without end, or it ended |
//! | `WAY-BACK` | with its first manifest again, the owner's objects are not those that it had |
//! | `MENDED` | the file of exceptions lists it, and it works: the line must go |
//!
//! # A mutation
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! # use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
//! use serde_json::json;
//! use windlass_testenv::TestEnv;
//! use windlass_testenv::mutation::Mutation;
//! use windlass_testenv::torture::{Kind, OperatorRun};
//!
//! # async fn my_operator(_: kube::Config, _: String) -> Result<(), kube::Error> { Ok(()) }
//! # async fn example(definition: CustomResourceDefinition) -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::shared().await?;
//! env.install_crds(&[definition.clone()]).await?;
//! let base = json!({"metadata": {"name": "shop"}, "spec": {"replicas": 2}});
//! let operator = |run: OperatorRun| my_operator(run.config(), run.namespace().to_owned());
//! let report = Mutation::new("my-operator", &definition, base, operator)
//!     .values("spec.host = \"a.example.com\"\nspec.host = \"b.example.com\"")
//!     .exceptions("no-effect spec.legacy the field was released and is kept for old manifests")
//!     .watch(Kind::of::<Deployment>())
//!     .slice_by_commit(10)
//!     .run(&env)
//!     .await?;
//! println!("{report}");
//! report.assert_passed();
//! # Ok(())
//! # }
//! ```
//!
//! Cases run side by side in lanes: a namespace with an operator and one owner. A lane that is not as it was
//! after a case is given up, and the next case gets a new one. The table of results is written to
//! `mutation/<name>.tsv` in the target directory.
//!
//! | variable | |
//! | --- | --- |
//! | `WINDLASS_MUTATION=all` | runs all cases; a run that was interrupted goes on where it was, for the same commit and files |
//! | `WINDLASS_MUTATION=slice:<k>/<n>` | runs the k-th of n slices, counted from 0; a commit's hash will do as k |
//! | `WINDLASS_MUTATION=<id>` | runs the cases whose ids begin with this text |
//! | `WINDLASS_MUTATION_SIDE_BY_SIDE=<n>` | runs so many lanes side by side, whatever the author [chose](Mutation::lanes) |
//!
//! # The file of values
//!
//! `spec.host = "a.example.com"` is a valid value, `spec.host ! "*"` an invalid one, and `spec.cache.redis
//! with {"spec": {"cache": {"kind": "Redis"}}}` a merge patch of the base, for this property and all below.
//! `*` in a path stands for any text; `~<pattern>` means all properties with this regular expression.
//!
//! # The file of exceptions
//!
//! `no-effect <path or id> <reason>`, `defect <id> <reason>`, and `unjudged <id> <reason>` for cases that
//! nobody has looked at yet. A line that fits nothing, or that lists what works, fails the test.
//!
//! # What it does not do
//!
//! - Change two properties at once, or any property that is not below `spec`.
//! - Judge anything but Kubernetes objects in the owner's namespace.

mod case;
mod exceptions;
mod judge;
mod lane;
mod overrides;
mod owner;
mod path;
mod plan;
mod report;
mod results;
mod run;
mod schema;
mod selection;
mod values;

pub use owner::OwnerReport;
pub use plan::Mutation;
pub use report::MutationReport;
