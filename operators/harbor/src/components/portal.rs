//! Portal: nginx with the pages of the web interface.

use windlass::PlanError;

use crate::api::portal::Portal;
use crate::catalogue;
use crate::config::portal::{CONFIG_KEY, CONFIG_PATH, Families, Portal as Input, SSL_DIR, render};
use crate::wiring::{certificate, is_tls};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Sources, config_map, count,
    mount_part, policy, secret, service,
};

impl Deployed for Portal {
    const BLUEPRINT: &'static str = "portal.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::Portal;

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec, served) = (context.site, &self.spec, self.spec.served());
        let families = spec.network.as_ref();
        let input = Input {
            tls: is_tls(served),
            max_connections: count(spec.max_connections),
            families: families.map_or(Families::BOTH, |network| Families {
                v4: network.has("IPv4"),
                v6: network.has("IPv6"),
            }),
        };
        let port = served.scheme();
        let probes = Probes::of(Check::Http { path: "/", port, served });
        let container = Container::new("portal", &context.image, probes)
            .port(port, served.container_port())
            .mount(mount_part("configuration", CONFIG_PATH, Some(CONFIG_KEY)));
        let mut pod = Pod::of(container, &spec.component);
        pod.volumes.push(config_map("configuration", site.name()));
        if let Some(name) = certificate(sources, "spec.tls", spec.tls.as_ref())? {
            pod = pod.with(secret("internal-certificates", name, &[]), SSL_DIR);
        }
        let front = service::service(site, site.name(), &[service::Port::served(served)]);
        let front = service::known_to_ingress(front, &self.metadata, served, port);
        let objects = ComponentObjects::new(site, render(&input, context.release), pod, vec![front]);
        Ok(ComponentObjects {
            secret: None,
            policies: vec![policy::ingress(site, [served.container_port()]), policy::no_egress(site)],
            ..objects
        })
    }
}
