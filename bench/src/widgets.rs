//! The objects that everything is done with: what they are, and what a subject must say of them. Pure.

use serde_json::{Value, json};

/// The number of namespaces.
const NAMESPACES: usize = 10;
/// The base path of the Widget API.
pub(crate) const GROUP: &str = "/apis/bench.windlass.dev/v1";
/// The annotation with the time at which the harness sent a change, in nanoseconds since 1970.
pub(crate) const SENT: &str = "bench.windlass.dev/sent";

/// Namespace and name of one Widget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WidgetKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The key of the Widget with this index.
pub(crate) fn key(index: usize) -> WidgetKey {
    WidgetKey { namespace: format!("bench-{}", index % NAMESPACES), name: format!("widget-{index:06}") }
}

/// The names of all namespaces.
pub(crate) fn namespaces() -> impl Iterator<Item = String> {
    (0..NAMESPACES).map(|index| format!("bench-{index}"))
}

/// The color of Widget `index`: few of them, as real fields have.
pub(crate) fn color(index: usize) -> &'static str {
    ["red", "green", "blue", "yellow", "violet", "orange", "white"][index % 7]
}

/// The spec of Widget `index`: about 2 KiB of JSON, most of it different for each.
pub(crate) fn spec(index: usize, color: &str) -> Value {
    let word = |salt: u32| {
        // Not to be compressed or shared by chance: a number that depends on everything.
        let mixed =
            (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(salt % 64) ^ u64::from(salt);
        format!("{mixed:016x}")
    };
    let env: Vec<Value> = (0..8)
        .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("{} of widget {index}", word(n))}))
        .collect();
    let config: serde_json::Map<String, Value> = (0..8)
        .map(|n| (format!("option.{n}"), json!(format!("{}-{}", word(100 + n), word(200 + n)))))
        .collect();
    let notes: Vec<String> = (0..48).map(|n| word(300 + n)).collect();
    json!({
        "size": index % 1000,
        "color": color,
        "image": format!("registry.example.com/team-{}/widget:v1.{}.{}", index % 50, index % 20, index % 7),
        "replicas": 1 + index % 3,
        "args": [format!("--name=widget-{index:06}"), "--config=/etc/widget", format!("--seed={}", word(400))],
        "env": env,
        "config": config,
        "notes": notes.join(" "),
    })
}

/// Widget `index`, to be created.
pub(crate) fn widget(index: usize, color: &str) -> Value {
    let WidgetKey { namespace, name } = key(index);
    json!({
        "apiVersion": "bench.windlass.dev/v1", "kind": "Widget",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {"app": "widget", "team": format!("team-{}", index % 50)},
        },
        "spec": spec(index, color),
    })
}

/// The ConfigMap of Widget `index`'s name and color, about as big.
pub(crate) fn config_map(index: usize) -> Value {
    let WidgetKey { namespace, name } = key(index);
    let spec = spec(index, color(index));
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "widget"}},
        "data": {"color": color(index), "size": (index % 1000).to_string(), "notes": spec["notes"], "args": spec["args"].to_string(), "env": spec["env"].to_string()},
    })
}

/// The checksum of a cache of Widgets `0..count`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    pub(crate) count: u64,
    pub(crate) names: u64,
    pub(crate) sizes: i64,
}

impl Checksum {
    pub(crate) fn of(count: usize) -> Self {
        let names = (0..count)
            .map(key)
            .fold(0u64, |sum, key| sum.wrapping_add(fnv(&format!("{}/{}", key.namespace, key.name))));
        let sizes = (0..count).map(|index| index % 1000).sum::<usize>();
        Self { count: count as u64, names, sizes: i64::try_from(sizes).unwrap_or(i64::MAX) }
    }

    /// The checksum of a cache of these objects, where it knows no sizes.
    pub(crate) fn of_names(objects: &[Value]) -> Self {
        let names = objects.iter().fold(0u64, |sum, object| {
            let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
            sum.wrapping_add(fnv(&format!("{}/{}", field("namespace"), field("name"))))
        });
        Self { count: objects.len() as u64, names, sizes: 0 }
    }

    /// The checksum that a subject reported.
    pub(crate) fn reported(event: &Value) -> Option<Self> {
        Some(Self {
            count: event["count"].as_u64()?,
            names: u64::from_str_radix(event["names"].as_str()?, 16).ok()?,
            sizes: event["sizes"].as_i64()?,
        })
    }

    /// The same for a form that has no sizes.
    pub(crate) fn without_sizes(self) -> Self {
        Self { sizes: 0, ..self }
    }
}

/// FNV-1a, 64 bits.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Numbers that look random and are the same every time: xorshift.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_widget_is_about_two_kibibytes_of_json() {
        for index in [0, 7, 49_999] {
            let size = widget(index, color(index)).to_string().len();
            assert!((1900..2400).contains(&size), "{size}");
        }
    }

    #[test]
    fn widgets_differ_and_are_the_same_every_time() {
        assert_eq!(widget(3, "red"), widget(3, "red"));
        assert_ne!(spec(3, "red")["notes"], spec(4, "red")["notes"]);
        let keys: std::collections::BTreeSet<WidgetKey> = (0..1000).map(key).collect();
        assert_eq!(keys.len(), 1000);
    }

    #[test]
    fn a_checksum_notices_a_missing_and_a_wrong_object() {
        let all = Checksum::of(10);
        assert_ne!(all, Checksum::of(9));
        let event = json!({"count": 10, "names": format!("{:016x}", all.names), "sizes": 45});
        assert_eq!(Checksum::reported(&event), Some(all.clone()));
        let objects: Vec<Value> = (0..10).map(|index| widget(index, "red")).collect();
        assert_eq!(Checksum::of_names(&objects), all.clone().without_sizes());
        assert_ne!(Checksum::reported(&json!({"count": 10, "names": "0", "sizes": 45})), Some(all));
        assert_eq!(Checksum::reported(&json!({"count": 10})), None);
    }

    #[test]
    fn dice_repeat_themselves_and_stay_below_their_bound() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..100).map(|_| dice.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(throws(1), throws(1));
        assert_ne!(throws(1), throws(2));
        assert!(throws(1).iter().all(|throw| *throw < 10));
        assert!((0..10).all(|face| throws(1).contains(&face)));
    }
}
