//! Redis or Valkey, as Harbor ships it: with a password, which its image does not have by itself.

use serde_json::json;
use windlass::{Plan, PlanError};

use crate::api::redis::RedisHost;
use crate::catalogue::Component;
use crate::cluster::{Part, Site, password};

use super::claim;
use super::database::release;
use super::server::{Server, secret_env};

const PORT: u16 = 6379;
/// The key that Harbor's components look for.
const KEY: &str = "redis-password";
/// The same password, as the operator of RedisFailovers reads it: so that a cache can change hands.
const KEYS: [&str; 2] = [KEY, "password"];
/// Starts whichever of the two servers the image has. The password goes by a file in memory, and is in nobody's list of processes.
const START: &str = r#"set -eu
umask 077
printf '%s\n' 'port 6379' 'dir /var/lib/redis' 'protected-mode no' 'appendonly yes' 'save 300 1' "requirepass $PASSWORD" > /run/cache/server.conf
unset PASSWORD
exec "$(command -v valkey-server || command -v redis-server)" /run/cache/server.conf
"#;
/// The answer is another until all data is loaded.
const ASK: &str =
    r#"[ "$(REDISCLI_AUTH="$PASSWORD" "$(command -v valkey-cli || command -v redis-cli)" ping)" = PONG ]"#;

/// Plans a cache.
pub fn cache(site: &Site<'_>, plan: &mut Plan) -> Result<Part<RedisHost>, PlanError> {
    let given = site.cluster.spec.cache.as_ref().and_then(|cache| cache.spec.built_in.clone());
    let given = given.unwrap_or_default();
    let name = site.names.cache();
    let release = release(site)?;
    let image = site.image(&given.image, |repository, suffix| {
        release.image_reference(Component::Cache, repository, suffix).unwrap_or_default()
    });
    let secret = password::plan(site, &name, &KEYS, plan);
    let volume = claim::plan(site, &name, &given.volume, "1Gi", &[], plan)?;
    let server = Server {
        name: name.clone(),
        component: Component::Cache,
        image,
        command: Some(["/bin/sh", "-c", START].map(str::to_owned).into()),
        env: vec![secret_env("PASSWORD", &name, KEY)],
        port: PORT,
        data: "/var/lib/redis",
        scratch: vec![("/run/cache", "1Mi")],
        file: None,
        lives: json!({"tcpSocket": {"port": "redis"}}),
        serves: json!({"exec": {"command": ["/bin/sh", "-c", ASK]}}),
        patience: 60,
        before: None,
        resources: given.resources.as_ref(),
        field: "spec.cache.spec.builtIn.resources",
    };
    let mut needs = server.plan(site, &[secret.clone(), volume.clone()], plan)?;
    needs.extend([secret, volume]);
    let told = RedisHost {
        host: site.names.host(&name),
        port: Some(i32::from(PORT)),
        password_ref: Some(name),
        ..RedisHost::default()
    };
    Ok(Part { told: Ok(told), needs })
}
