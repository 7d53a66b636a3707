package main

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"windlass.dev/bench/api"
)

const (
	appLabel               = "app"
	configDigestAnnotation = "bench.windlass.dev/config-digest"
	configVolume           = "config"
)

// child is one desired child: the object to apply, and its cached state.
type child struct {
	apply  runtime.ApplyConfiguration
	meta   *metav1ac.ObjectMetaApplyConfiguration
	cached client.Object
	// fresh is true if apply holds the API server's answer.
	fresh bool
}

// children are the five children of one Widget, all of its name.
type children struct {
	serviceAccount, configMap, secret, service, deployment child
}

// all lists the children, those that others refer to first.
func (c *children) all() []*child {
	return []*child{&c.serviceAccount, &c.configMap, &c.secret, &c.service, &c.deployment}
}

// rolledOut reports whether the Deployment is available at the scale and generation
// wanted. It believes the answer to an apply before the cache, which may not have
// seen that apply yet.
func (c *children) rolledOut(replicas int32) bool {
	if applied, ok := c.deployment.apply.(*appsv1ac.DeploymentApplyConfiguration); ok && c.deployment.fresh {
		status := ptr.Deref(applied.Status, appsv1ac.DeploymentStatusApplyConfiguration{})
		return ptr.Deref(status.ObservedGeneration, 0) >= ptr.Deref(applied.Generation, 0) &&
			ptr.Deref(status.AvailableReplicas, 0) >= replicas
	}
	cached, ok := c.deployment.cached.(*appsv1.Deployment)
	return ok && cached.Status.ObservedGeneration >= cached.Generation &&
		cached.Status.AvailableReplicas >= replicas
}

// childrenOf works out the children a Widget should have. It reads nothing but its
// argument, so the same Widget always has the same children.
func childrenOf(widget *api.Widget) (*children, error) {
	data := configData(&widget.Spec)
	encoded, err := json.Marshal(data) // sorts its keys
	if err != nil {
		return nil, fmt.Errorf("encode config: %w", err)
	}
	owner := ownerReference(widget)

	serviceAccount := corev1ac.ServiceAccount(widget.Name, widget.Namespace).
		WithOwnerReferences(owner)
	configMap := corev1ac.ConfigMap(widget.Name, widget.Namespace).
		WithOwnerReferences(owner).
		WithData(data)
	secret := corev1ac.Secret(widget.Name, widget.Namespace).
		WithOwnerReferences(owner).
		WithData(map[string][]byte{"token": []byte(digest([]byte(widget.Spec.Notes)))})
	service := corev1ac.Service(widget.Name, widget.Namespace).
		WithOwnerReferences(owner).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(map[string]string{appLabel: widget.Name}).
			WithPorts(corev1ac.ServicePort().
				WithPort(80).
				// Part of the key of the list, and defaulted: an apply must name it.
				WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromInt32(8080))))
	deployment := deploymentOf(widget, digest(encoded)).
		WithOwnerReferences(owner)

	return &children{
		serviceAccount: child{
			apply: serviceAccount, meta: serviceAccount.ObjectMetaApplyConfiguration, cached: &corev1.ServiceAccount{},
		},
		configMap: child{
			apply: configMap, meta: configMap.ObjectMetaApplyConfiguration, cached: &corev1.ConfigMap{},
		},
		secret: child{
			apply: secret, meta: secret.ObjectMetaApplyConfiguration, cached: &corev1.Secret{},
		},
		service: child{
			apply: service, meta: service.ObjectMetaApplyConfiguration, cached: &corev1.Service{},
		},
		deployment: child{
			apply: deployment, meta: deployment.ObjectMetaApplyConfiguration, cached: &appsv1.Deployment{},
		},
	}, nil
}

// configData is the content of the ConfigMap; the prefix keeps a Widget's own keys
// apart from color and size.
func configData(spec *api.WidgetSpec) map[string]string {
	data := make(map[string]string, len(spec.Config)+2)
	data[colorKey] = spec.Color
	data["size"] = strconv.FormatInt(spec.Size, 10)
	for key, value := range spec.Config {
		data["config."+key] = value
	}
	return data
}

// ownerReference is controllerutil.SetControllerReference for apply configurations,
// which have no helper for it.
func ownerReference(widget *api.Widget) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(api.GroupVersion.String()).
		WithKind(api.WidgetGVK.Kind).
		WithName(widget.Name).
		WithUID(widget.UID).
		WithController(true).
		WithBlockOwnerDeletion(true)
}

func deploymentOf(widget *api.Widget, configDigest string) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{appLabel: widget.Name}
	container := corev1ac.Container().
		WithName("widget").
		WithImage(widget.Spec.Image).
		WithArgs(widget.Spec.Args...).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(configVolume).WithMountPath("/etc/widget"))
	for _, variable := range widget.Spec.Env {
		container.WithEnv(corev1ac.EnvVar().WithName(variable.Name).WithValue(variable.Value))
	}
	return appsv1ac.Deployment(widget.Name, widget.Namespace).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(widget.Spec.Replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(labels).
				// Rolls the pods when the ConfigMap changes under them.
				WithAnnotations(map[string]string{configDigestAnnotation: configDigest}).
				WithSpec(corev1ac.PodSpec().
					WithContainers(container).
					WithVolumes(corev1ac.Volume().
						WithName(configVolume).
						WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(widget.Name))))))
}
