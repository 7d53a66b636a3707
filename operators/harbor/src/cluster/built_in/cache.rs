//! The built-in cache: Redis or Valkey as Harbor ships it, with a password, which the image does not set by
//! itself.

use serde_json::json;
use windlass::{Needs, Plan, PlanError};

use crate::api::harborcluster_parts::BuiltInVolume;
use crate::api::redis::RedisHost;
use crate::catalogue::Component;
use crate::cluster::{Dependency, Site, password};

use super::claim::Claim;
use super::database::release;
use super::server::{Server, secret_env};

const PORT: u16 = 6379;
/// Key of the password that Harbor's components read.
const KEY: &str = "redis-password";
/// Keys of the password: the Redis operator reads the second one, so that the cache can be handed over to it.
const KEYS: [&str; 2] = [KEY, "password"];
/// Starts Redis or Valkey, whichever the image has. The password is passed in a file on a memory volume, so
/// that it does not show in the list of processes.
const START: &str = r#"set -eu
umask 077
printf '%s\n' 'port 6379' 'dir /var/lib/redis' 'protected-mode no' 'appendonly yes' 'save 300 1' "requirepass $PASSWORD" > /run/cache/server.conf
unset PASSWORD
exec "$(command -v valkey-server || command -v redis-server)" /run/cache/server.conf
"#;
/// Health check. The server answers with an error until all data is loaded.
const ASK: &str =
    r#"[ "$(REDISCLI_AUTH="$PASSWORD" "$(command -v valkey-cli || command -v redis-cli)" ping)" = PONG ]"#;

/// Adds the cache to the plan.
pub(crate) fn cache(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<RedisHost>, PlanError> {
    let spec = site.cluster.spec.cache.as_ref().and_then(|cache| cache.spec.built_in.clone());
    let spec = spec.unwrap_or_default();
    let name = site.names.cache();
    let release = release(site)?;
    let image = site.image(&spec.image, |repository, suffix| {
        release.image_reference(Component::Cache, repository, suffix).unwrap_or_default()
    });
    let secret = password::plan(site, &name, &KEYS, plan);
    let volume = Claim {
        name: &name,
        field: "spec.cache.spec.builtIn",
        volume: &spec.volume,
        usual_size: BuiltInVolume::OF_CACHE,
        modes: &[],
    };
    let volume = volume.plan(site, needs, plan)?;
    let server = Server {
        name: name.clone(),
        component: Component::Cache,
        image,
        command: Some(["/bin/sh", "-c", START].map(str::to_owned).into()),
        env: vec![secret_env("PASSWORD", &name, KEY)],
        port: PORT,
        data: "/var/lib/redis",
        scratch: vec![("/run/cache", "1Mi")],
        files: None,
        lives: json!({"tcpSocket": {"port": "redis"}}),
        serves: json!({"exec": {"command": ["/bin/sh", "-c", ASK]}}),
        patience: 60,
        before: None,
        resources: spec.resources.as_ref(),
        field: "spec.cache.spec.builtIn.resources",
    };
    let mut needs = server.plan(site, &[secret.clone(), volume.clone()], plan)?;
    needs.extend([secret, volume]);
    let settings = RedisHost {
        host: site.names.host(&name),
        port: Some(i32::from(PORT)),
        password_ref: Some(name),
        ..RedisHost::default()
    };
    Ok(Dependency { settings: Ok(settings), needs })
}
