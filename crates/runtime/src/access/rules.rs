//! Converts entries to policy rules: merged, sorted, with as few rules as possible.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{Entry, Verb};

type Verbs = BTreeSet<Verb>;
type Names<'a> = BTreeSet<&'a str>;

/// Returns rules that allow exactly these entries.
///
/// Entries of one resource and name become one; resources of one group with the same verbs share a rule. RBAC
/// cannot restrict `create` by name (the object has none yet), so the `create` of a named entry becomes a
/// rule without names.
pub(super) fn merged(entries: &[Entry]) -> Vec<PolicyRule> {
    let mut verbs: BTreeMap<(&str, &str, Option<&str>), Verbs> = BTreeMap::new();
    for entry in entries {
        let (unnamed, named): (Vec<Verb>, Vec<Verb>) =
            entry.verbs.iter().partition(|verb| entry.name.is_none() || **verb == Verb::Create);
        for (name, some) in [(None, unnamed), (entry.name.as_deref(), named)] {
            if !some.is_empty() {
                verbs.entry((&entry.group, &entry.resource, name)).or_default().extend(some);
            }
        }
    }
    // A verb that is allowed on all objects of a kind does not have to be listed by name.
    let anyone = verbs.clone();
    for ((group, resource, name), some) in &mut verbs {
        if name.is_some()
            && let Some(all) = anyone.get(&(*group, *resource, None))
        {
            some.retain(|verb| !all.contains(verb));
        }
    }
    // First merge names of one resource with the same verbs, then resources with the same verbs and names.
    let mut names: BTreeMap<(&str, &str, Verbs, bool), Names<'_>> = BTreeMap::new();
    for ((group, resource, name), verbs) in verbs {
        if !verbs.is_empty() {
            names.entry((group, resource, verbs, name.is_some())).or_default().extend(name);
        }
    }
    let mut resources: BTreeMap<(&str, Verbs, Names<'_>), Names<'_>> = BTreeMap::new();
    for ((group, resource, verbs, _), names) in names {
        resources.entry((group, verbs, names)).or_default().insert(resource);
    }
    let owned = |texts: &BTreeSet<&str>| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut rules: Vec<PolicyRule> = resources
        .iter()
        .map(|((group, verbs, names), resources)| PolicyRule {
            api_groups: Some(vec![(*group).to_owned()]),
            resources: Some(owned(resources)),
            resource_names: (!names.is_empty()).then(|| owned(names)),
            verbs: verbs.iter().map(|verb| verb.as_str().to_owned()).collect(),
            ..PolicyRule::default()
        })
        .collect();
    // Sort by group, then by resource, which is what a reader looks for.
    rules.sort_by(|a, b| {
        (&a.api_groups, &a.resources, &a.resource_names).cmp(&(
            &b.api_groups,
            &b.resources,
            &b.resource_names,
        ))
    });
    rules
}

#[cfg(test)]
mod tests {
    use super::super::Access;
    use super::*;
    use crate::key::ObjectKey;
    use crate::webhook::Target;
    use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
    use proptest::prelude::*;

    /// Formats rules, one per line: `group: resources [names]: verbs`.
    fn text(rules: &[PolicyRule]) -> Vec<String> {
        let join = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(",");
        let line = |rule: &PolicyRule| {
            let names = rule
                .resource_names
                .as_ref()
                .map(|names| format!(" [{}]", names.join(",")))
                .unwrap_or_default();
            format!("{}: {}{names}: {}", join(&rule.api_groups), join(&rule.resources), rule.verbs.join(","))
        };
        rules.iter().map(line).collect()
    }

    #[test]
    fn rules_are_merged_and_sorted_in_any_order_of_declaration() {
        let parts = [
            Access::none().watches::<Deployment>(),
            Access::none().applies::<Deployment>(),
            Access::none().watches::<StatefulSet>().applies::<StatefulSet>(),
            Access::none().owns::<StatefulSet>().status::<StatefulSet>(),
            Access::none().watches::<ConfigMap>().applies::<ConfigMap>().deletes::<ConfigMap>(),
            Access::none().watches::<Service>(),
            Access::none().events(),
        ];
        let expected = [
            ": configmaps: get,list,watch,create,patch,delete",
            ": services: get,list,watch",
            "apps: deployments,statefulsets: get,list,watch,create,patch",
            "apps: statefulsets/finalizers: update",
            "apps: statefulsets/status: patch",
            "events.k8s.io: events: create,patch",
        ];
        let forwards = parts.iter().cloned().fold(Access::none(), Access::and);
        let backwards = parts.iter().rev().cloned().fold(Access::none(), Access::and);
        assert_eq!(text(&forwards.rules()), expected);
        assert_eq!(text(&backwards.rules()), expected);
        assert_eq!(text(&forwards.clone().and(backwards).rules()), expected, "twice is once");
    }

    #[test]
    fn access_to_one_object_is_granted_by_name_except_for_create() {
        let targets = [Target::validating("shop"), Target::definition("games.example.com")];
        let access = Access::none()
            .elects(&ObjectKey::namespaced("ops", "shop-leader"))
            .certificates(&ObjectKey::namespaced("ops", "shop-webhooks"))
            .injects(&targets);
        assert_eq!(
            text(&access.rules()),
            [
                ": secrets: create",
                ": secrets [shop-webhooks]: get,list,watch,patch",
                "admissionregistration.k8s.io: validatingwebhookconfigurations [shop]: get,list,watch,patch",
                "apiextensions.k8s.io: customresourcedefinitions [games.example.com]: get,list,watch,patch",
                "coordination.k8s.io: leases: create",
                "coordination.k8s.io: leases [shop-leader]: get,list,watch,patch",
            ]
        );
        let all = access.watches::<Secret>();
        assert!(
            text(&all.rules()).contains(&": secrets [shop-webhooks]: patch".to_owned()),
            "the rest is granted for all"
        );
    }

    #[test]
    fn roles_separate_cluster_scoped_kinds_and_grant_namespaced_access_in_its_namespace() {
        let access = Access::none()
            .watches::<ConfigMap>()
            .watches::<Namespace>()
            .guard()
            .elects(&ObjectKey::namespaced("ops", "leader"));
        let (cluster, roles) = access.roles("op", ["b", "a", "b"]);
        assert_eq!(
            text(&cluster.unwrap().rules.unwrap()),
            [
                ": namespaces: get,list,watch",
                "authentication.k8s.io: tokenreviews: create",
                "authorization.k8s.io: subjectaccessreviews: create"
            ]
        );
        let found: Vec<_> = roles
            .iter()
            .map(|role| (role.metadata.namespace.as_deref().unwrap(), text(role.rules.as_ref().unwrap())))
            .collect();
        let maps = vec![": configmaps: get,list,watch".to_owned()];
        let lease = vec![
            "coordination.k8s.io: leases: create".to_owned(),
            "coordination.k8s.io: leases [leader]: get,list,watch,patch".to_owned(),
        ];
        assert_eq!(found, [("a", maps.clone()), ("b", maps), ("ops", lease)]);
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        const VERBS: [Verb; 4] = [Verb::Get, Verb::List, Verb::Create, Verb::Patch];
        let verbs = prop::collection::btree_set(prop::sample::select(&VERBS[..]), 1..4);
        ("a|b", "x|y|x/status", prop::option::of("m|n"), verbs).prop_map(|(group, resource, name, verbs)| {
            Entry { group: group.into(), resource, namespaced: true, namespace: None, name, verbs }
        })
    }

    proptest! {
        #[test]
        fn rules_allow_exactly_the_declared_access(entries in prop::collection::vec(any_entry(), 0..8)) {
            let rules = merged(&entries);
            let allowed = |group: &str, resource: &str, name: &str, verb: Verb| rules.iter().any(|rule| {
                let has = |list: &Option<Vec<String>>, text: &str| list.iter().flatten().any(|item| item == text);
                has(&rule.api_groups, group) && has(&rule.resources, resource)
                    && rule.verbs.iter().any(|granted| granted == verb.as_str())
                    && (rule.resource_names.is_none() || has(&rule.resource_names, name))
            });
            let declared = |group: &str, resource: &str, name: &str, verb: Verb| entries.iter().any(|entry| {
                entry.group == group && entry.resource == resource && entry.verbs.contains(&verb)
                    && (verb == Verb::Create || entry.name.as_deref().is_none_or(|only| only == name))
            });
            for group in ["a", "b"] {
                for resource in ["x", "y", "x/status"] {
                    for name in ["m", "n", "other"] {
                        for verb in [Verb::Get, Verb::List, Verb::Create, Verb::Update, Verb::Patch] {
                            prop_assert_eq!(
                                allowed(group, resource, name, verb), declared(group, resource, name, verb),
                                "{} {} {} {:?}: {:?}", group, resource, name, verb, text(&rules)
                            );
                        }
                    }
                }
            }
        }
    }
}
