//! The files and the environment of a container, of what was drawn: as the kubelet would give them to it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harbor_operator::config::{Env, EnvValue};
use serde_json::Value;
use windlass::Sketch;

/// A pod, and every object that it reads from.
pub(crate) struct Drawn {
    pod: Value,
    objects: Vec<Value>,
}

impl Drawn {
    /// Takes the only pods of a sketch; `inputs` are the objects that the sketch was drawn from.
    pub(crate) fn of(sketch: &Sketch, inputs: Vec<Value>) -> Self {
        assert!(sketch.waiting.is_empty(), "{:?}", sketch.waiting);
        let workload = sketch.objects.iter().find(|object| object.makes_pods()).unwrap();
        let pod = workload.body()["spec"]["template"]["spec"].clone();
        let drawn = sketch.objects.iter().map(|object| object.body().clone());
        Self { pod, objects: drawn.chain(inputs).collect() }
    }

    /// The component itself.
    pub(crate) fn container(&self) -> &Value {
        &self.pod["containers"][0]
    }

    /// Returns the content of the file that the container reads at `path`.
    pub(crate) fn file(&self, path: &str) -> String {
        let below = |mount: &Value| {
            let file = path.strip_prefix(mount["mountPath"].as_str().unwrap())?.strip_prefix('/')?;
            Some((mount["name"].clone(), file.to_owned()))
        };
        let mounts = self.container()["volumeMounts"].as_array().unwrap();
        // A mount hides what the one around it has there.
        let nearest = mounts.iter().filter_map(below).min_by_key(|(_, file)| file.len());
        let (name, file) = nearest.unwrap_or_else(|| panic!("nothing is mounted at {path}"));
        let volumes = self.pod["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == name).unwrap();
        let (kind, source, object) = if volume["secret"].is_object() {
            ("Secret", &volume["secret"], &volume["secret"]["secretName"])
        } else {
            ("ConfigMap", &volume["configMap"], &volume["configMap"]["name"])
        };
        let key = match source["items"].as_array() {
            Some(items) => {
                let item = items.iter().find(|item| item["path"] == *file);
                item.unwrap_or_else(|| panic!("{volume} has no {file}"))["key"].as_str().unwrap()
            }
            None => file.as_str(),
        };
        self.value(kind, object, key)
    }

    /// Returns the environment of the container, with all references resolved.
    pub(crate) fn environment(&self) -> Vec<Env> {
        let all = self.container()["env"].as_array().map(Vec::as_slice).unwrap_or_default();
        let value = |env: &Value| {
            if let Some(text) = env["value"].as_str() {
                text.replace("$$", "$")
            } else {
                let from = &env["valueFrom"]["secretKeyRef"];
                self.value("Secret", &from["name"], from["key"].as_str().unwrap())
            }
        };
        let variable = |env: &Value| Env {
            name: env["name"].as_str().unwrap().to_owned(),
            value: EnvValue::Literal(value(env)),
        };
        all.iter().map(variable).collect()
    }

    fn value(&self, kind: &str, name: &Value, key: &str) -> String {
        let is_it = |object: &&Value| object["kind"] == *kind && object["metadata"]["name"] == *name;
        let object = self.objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"));
        let text = object["data"][key].as_str().unwrap_or_else(|| panic!("{kind} {name} has no {key}"));
        match kind {
            "Secret" => String::from_utf8(BASE64_STANDARD.decode(text).unwrap()).unwrap(),
            _ => text.to_owned(),
        }
    }
}
