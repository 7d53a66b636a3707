//! Conversion of a defaulter's changes to a JSON patch of the user's object.
//!
//! Promises: the patch contains only the changes of the defaulter. A field that the typed object does not
//! know, writes in another form (`1` and `"1"`), leaves out or fills in while decoding stays as the user sent
//! it; an object that was not changed yields no patch.
//!
//! The typed object is serialized before and after; the differences are transferred to the raw object. In a
//! list whose length changed, elements are matched by equality, then by `name`.

use serde_json::Value;

/// Returns the patch from `raw` to `raw` with the changes from `before` to `after`.
pub(super) fn between(raw: &Value, before: &Value, after: &Value) -> Vec<Value> {
    if before == after {
        return Vec::new();
    }
    let changed = carried(raw, before, after);
    match serde_json::to_value(json_patch::diff(raw, &changed)) {
        Ok(Value::Array(operations)) => operations,
        // A patch is a list of objects with string keys: serializing it cannot fail.
        _ => Vec::new(),
    }
}

fn carried(raw: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return raw.clone();
    }
    match (raw, before, after) {
        (Value::Object(raw), Value::Object(before), Value::Object(after)) => {
            let mut result = raw.clone();
            for (key, new) in after {
                let value = match (raw.get(key), before.get(key)) {
                    (_, Some(old)) if old == new => continue,
                    (Some(raw), Some(old)) => carried(raw, old, new),
                    _ => new.clone(),
                };
                result.insert(key.clone(), value);
            }
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                result.remove(key);
            }
            Value::Object(result)
        }
        (Value::Array(raw), Value::Array(before), Value::Array(after)) if raw.len() == before.len() => {
            Value::Array(carried_list(raw, before, after))
        }
        _ => after.clone(),
    }
}

/// Requires that `raw` and `before` have the same elements, in the same order.
fn carried_list(raw: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let mut origin: Vec<Option<usize>> = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    let mut pair = |same: &dyn Fn(usize, usize) -> bool| {
        for (new, origin) in origin.iter_mut().enumerate().filter(|(_, origin)| origin.is_none()) {
            // The same index first: of equal elements, those that did not move are the same.
            let mut candidates =
                std::iter::once(new).filter(|old| *old < before.len()).chain(0..before.len());
            *origin = candidates.find(|old| !taken[*old] && same(*old, new));
            if let Some(old) = *origin {
                taken[old] = true;
            }
        }
    };
    pair(&|old, new| before[old] == after[new]);
    pair(&|old, new| {
        let name = after[new].get("name");
        name.is_some() && before[old].get("name") == name
    });
    if before.len() == after.len() {
        pair(&|old, new| old == new);
    }
    let carry = |(new, origin): (&Value, Option<usize>)| match origin {
        Some(old) => carried(&raw[old], &before[old], new),
        None => new.clone(),
    };
    after.iter().zip(origin).map(carry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the raw object after the patch.
    fn patched(raw: &Value, before: &Value, after: &Value) -> Value {
        let operations: Vec<json_patch::PatchOperation> =
            serde_json::from_value(Value::from(between(raw, before, after))).unwrap();
        let mut result = raw.clone();
        json_patch::patch(&mut result, &operations).unwrap();
        result
    }

    #[test]
    fn a_patch_contains_only_the_changes_of_the_defaulter() {
        // (what the user sent, typed before, typed after, result)
        let cases = [
            (
                "unknown fields survive beside a change",
                json!({"a": 1, "unknown": {"x": 1}}),
                json!({"a": 1}),
                json!({"a": 2}),
                json!({"a": 2, "unknown": {"x": 1}}),
            ),
            (
                "what decoding filled in is not written",
                json!({}),
                json!({"replicas": 1, "status": null}),
                json!({"replicas": 1, "status": null, "image": "i"}),
                json!({"image": "i"}),
            ),
            (
                "what decoding filled in and the defaulter changed is written",
                json!({}),
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 2}}),
                json!({"spec": {"replicas": 2}}),
            ),
            (
                "another form of the same value stays",
                json!({"cpu": 1, "b": 1}),
                json!({"cpu": "1", "b": 1}),
                json!({"cpu": "1"}),
                json!({"cpu": 1}),
            ),
            (
                "an element is added: the others keep their unknown fields",
                json!({"c": [{"name": "a", "new": 1}, {"name": "b", "new": 2}]}),
                json!({"c": [{"name": "a"}, {"name": "b"}]}),
                json!({"c": [{"name": "side"}, {"name": "a", "image": "i"}, {"name": "b"}]}),
                json!({"c": [{"name": "side"}, {"name": "a", "image": "i", "new": 1}, {"name": "b", "new": 2}]}),
            ),
            (
                "elements that only moved keep their unknown fields",
                json!([{"v": 1, "u": 1}, {"v": 2, "u": 2}]),
                json!([{"v": 1}, {"v": 2}]),
                json!([{"v": 2}, {"v": 1}]),
                json!([{"v": 2, "u": 2}, {"v": 1, "u": 1}]),
            ),
            (
                "an element that changed keeps its unknown fields where none came or went",
                json!([{"v": 1, "u": 1}]),
                json!([{"v": 1}]),
                json!([{"v": 5}]),
                json!([{"v": 5, "u": 1}]),
            ),
        ];
        for (what, raw, before, after, expected) in cases {
            assert_eq!(patched(&raw, &before, &after), expected, "{what}");
        }
    }

    #[test]
    fn an_unchanged_object_yields_no_patch() {
        assert!(between(&json!({"unknown": 1}), &json!({"x": null}), &json!({"x": null})).is_empty());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3i64).prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("name|a|b", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_fully_typed_object_is_patched_to_the_defaulters_result(
            raw in any_value(), after in any_value(),
        ) {
            prop_assert_eq!(patched(&raw, &raw, &after), after);
        }

        #[test]
        fn an_unknown_field_of_the_root_is_always_kept(before in any_value(), after in any_value()) {
            let wrap = |spec: &Value| json!({"spec": spec});
            let mut raw = wrap(&before);
            raw["unknown"] = json!([1]);
            let result = patched(&raw, &wrap(&before), &wrap(&after));
            prop_assert_eq!(&result["unknown"], &raw["unknown"]);
            prop_assert_eq!(&result["spec"], &after);
        }
    }
}
