//! Removes an installation of the operator from a cluster.
//!
//! It promises: every step can end without the steps before it being repeated, so that an interrupted run is
//! continued by the next; webhook configurations go first, because they reject requests once nobody answers
//! them; nothing that belongs to a user's object is deleted, unless the kinds themselves are deleted on
//! request.
//!
//! It does not delete namespaces, volumes, or the Secrets of users' objects.

mod owners;
mod targets;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use serde::Deserialize;
use serde_json::Value;
use windlass_runtime::client::{Client, Delete, Failure as ClientFailure, Propagation};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Uid;
use windlass_runtime::resource::ResourceType;

use self::owners::{Owner, Owners};
use self::targets::{Target, Targets};
use crate::args;
use crate::failure::Failure;
use crate::manifests::{Install, NAME_LABEL};
use crate::operator::Operator;

/// The longest wait for an object that is being deleted: longer than the Pods of an operator take to stop.
const PATIENCE: Duration = Duration::from_mins(2);
/// The interval between two looks at an object that is being deleted.
const INTERVAL: Duration = Duration::from_millis(300);

/// Removes the installation, and passes one line for each removed or kept thing to `print`.
pub(crate) async fn uninstall(
    operator: &Operator,
    args: &args::Uninstall,
    client: &Client,
    print: &dyn Fn(&str),
) -> Result<(), Failure> {
    let mut install = Install::of(operator);
    if let Some(namespace) = &args.namespace {
        install = install.namespace(namespace);
    }
    let targets = Targets::find(operator, &install, client).await?;
    let mut removal = Removal { operator, client, print, dry_run: args.dry_run, removed: 0 };
    removal.run(&targets, args.delete_crds).await
}

/// One run of the command.
struct Removal<'a> {
    operator: &'a Operator,
    client: &'a Client,
    print: &'a dyn Fn(&str),
    dry_run: bool,
    removed: usize,
}

/// The parts of an object that decide whether it is deleted.
#[derive(Deserialize)]
struct Found {
    metadata: FoundMeta,
}

#[derive(Deserialize)]
struct FoundMeta {
    uid: Uid,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

impl Removal<'_> {
    async fn run(&mut self, targets: &Targets, delete_crds: bool) -> Result<(), Failure> {
        let deployment: Option<Deployment> =
            self.client.objects().find(&targets.deployment.key).await.map_err(|error| failed(&error))?;
        let owners = Owners::of(self.operator, deployment.as_ref(), &targets.namespace);
        let is_running = deployment.as_ref().is_some_and(is_available);
        // With their definitions, owners are deleted while the operator still runs, so that it can undo its
        // effects outside of the cluster.
        self.check_effects(&owners, delete_crds && is_running).await?;

        for target in &targets.webhooks {
            self.delete(target).await?;
        }
        if delete_crds {
            self.delete_definitions(&owners, is_running).await?;
        }
        self.delete(&targets.deployment).await?;
        if !self.dry_run {
            self.wait_until_gone(&targets.deployment).await?;
        }
        // Only now: an operator that runs would set them again.
        self.release(&owners).await?;
        for target in &targets.rest {
            self.delete(target).await?;
        }
        if delete_crds {
            self.delete(&targets.digest_key).await?;
            self.wait_for_definitions().await?;
        }
        if self.removed == 0 {
            self.line(&format!(
                "nothing of {} is left in namespace {}",
                self.operator.name, targets.namespace
            ));
        }
        self.list_kept(targets, &owners, delete_crds).await
    }

    fn line(&self, text: &str) {
        (self.print)(text);
    }

    /// Deletes an object, if it exists and is part of the installation.
    async fn delete(&mut self, target: &Target) -> Result<(), Failure> {
        self.delete_as(target, &target.to_string()).await
    }

    /// Deletes an object, and prints it with this text.
    async fn delete_as(&mut self, target: &Target, text: &str) -> Result<(), Failure> {
        let objects = self.client.objects_of::<Found>(target.resource.clone());
        let Some(found) = objects.find(&target.key).await.map_err(|error| failed(&error))? else {
            return Ok(());
        };
        let name = self.operator.name;
        if target.labelled && found.metadata.labels.get(NAME_LABEL).is_none_or(|label| label != name) {
            self.line(&format!("kept {target}: it has no label {NAME_LABEL}: {name}"));
            return Ok(());
        }
        self.removed += 1;
        if self.dry_run {
            self.line(&format!("would delete {text}"));
            return Ok(());
        }
        let mut delete = Delete::incarnation(found.metadata.uid);
        if target.resource.kind == "Deployment" {
            // It is gone when its Pods are.
            delete = delete.propagation(Propagation::Foreground);
        }
        match self.client.objects_of::<Value>(target.resource.clone()).delete(&target.key, &delete).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(failed(&error)),
        }
        self.line(&format!("deleted {text}"));
        Ok(())
    }

    async fn wait_until_gone(&self, target: &Target) -> Result<(), Failure> {
        let objects = self.client.objects_of::<Value>(target.resource.clone());
        let gone = async {
            while objects.find(&target.key).await.map_err(|error| failed(&error))?.is_some() {
                tokio::time::sleep(INTERVAL).await;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, gone).await.unwrap_or_else(|_| {
            Err(Failure::Running(format!(
                "{target} is still being deleted after {} s. `kubectl get -o yaml` shows the finalizers that hold it; run \
                 this command again when it is gone",
                PATIENCE.as_secs()
            )))
        })
    }

    /// Fails if an object has effects outside of the cluster that nobody would undo any more.
    async fn check_effects(&self, owners: &Owners, undone: bool) -> Result<(), Failure> {
        let owners = owners.list(self.client).await?;
        let names: Vec<String> =
            owners.iter().filter(|owner| owner.has_effects()).map(Owner::title).collect();
        if names.is_empty() || undone {
            return Ok(());
        }
        Err(Failure::Running(format!(
            "nothing was removed: the operator has to undo effects outside of the cluster when these objects are deleted: {}. \
             Delete them first, while the operator runs",
            names.join(", ")
        )))
    }

    /// Deletes the definitions of the kinds, and with them all objects of these kinds.
    async fn delete_definitions(&mut self, owners: &Owners, is_running: bool) -> Result<(), Failure> {
        let counts = owners.count(self.client).await?;
        for (definition, count) in counts {
            let target = Target::definition(&definition);
            self.delete_as(&target, &format!("{target} (objects: {count})")).await?;
        }
        if self.dry_run || !is_running {
            return Ok(());
        }
        let torn_down = async {
            while owners.list(self.client).await?.iter().any(Owner::is_held) {
                tokio::time::sleep(INTERVAL).await;
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, torn_down).await {
            Ok(done) => done,
            // What the operator has not finished by now is released below, unless it has effects.
            Err(_) => self.check_effects(owners, false).await,
        }
    }

    /// Removes our finalizers from the objects that nobody would release any more.
    async fn release(&mut self, owners: &Owners) -> Result<(), Failure> {
        for owner in owners.list(self.client).await?.iter().filter(|owner| owner.is_held()) {
            self.removed += 1;
            let title = owner.title();
            if self.dry_run {
                self.line(&format!("would remove the finalizer of {title}"));
                continue;
            }
            match owner.release(self.client, self.operator.name).await {
                Ok(()) => self.line(&format!("removed the finalizer of {title}")),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    async fn wait_for_definitions(&self) -> Result<(), Failure> {
        if self.dry_run {
            return Ok(());
        }
        for definition in self.operator.definitions() {
            let name = definition.metadata.name.clone().unwrap_or_default();
            self.wait_until_gone(&Target::definition(&name)).await?;
        }
        Ok(())
    }

    /// Prints the things that stay in the cluster.
    async fn list_kept(&self, targets: &Targets, owners: &Owners, delete_crds: bool) -> Result<(), Failure> {
        let mut objects = 0;
        if !delete_crds {
            for (definition, count) in owners.count(self.client).await? {
                let target = Target::definition(&definition);
                if self.exists(&target).await? {
                    objects += count;
                    self.line(&format!("kept {target} (objects: {count})"));
                }
            }
            if objects > 0 {
                self.line(
                    "kept everything that these objects own: their Pods run on. Deleting an object deletes what it owns",
                );
            }
        }
        self.line("kept volumes, passwords and keys that are retained by the policy of the object that they belong to");
        for target in targets.kept.iter().chain((!delete_crds).then_some(&targets.digest_key)) {
            if self.exists(target).await? {
                self.line(&format!("kept {target}"));
            }
        }
        Ok(())
    }

    async fn exists(&self, target: &Target) -> Result<bool, Failure> {
        let objects = self.client.objects_of::<Value>(target.resource.clone());
        Ok(objects.find(&target.key).await.map_err(|error| failed(&error))?.is_some())
    }
}

fn is_available(deployment: &Deployment) -> bool {
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas);
    available.is_some_and(|available| available > 0)
}

/// Returns the failure for an error of a call, with the remedy where there is one.
fn failed(error: &windlass_runtime::client::ClientError) -> Failure {
    let remedy = match error.failure() {
        ClientFailure::Forbidden | ClientFailure::Unauthorized => {
            "; use a kubeconfig of an administrator of the cluster (--kubeconfig)"
        }
        _ => "",
    };
    Failure::Running(format!(
        "{error}{remedy}. What was removed is listed above; run the command again to continue"
    ))
}

/// Returns the key of an object in a namespace, or of a cluster-scoped one.
fn key(resource: &ResourceType, namespace: Option<&str>, name: &str) -> ObjectKey {
    match namespace.filter(|_| resource.namespaced) {
        Some(namespace) => ObjectKey::namespaced(namespace, name),
        None => ObjectKey::cluster(name),
    }
}
