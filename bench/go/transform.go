package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/bench/api"
)

// The transforms of the tuned row. Each keeps what its mode reads and what the
// machinery needs, and lets the rest go before the object enters the cache. They
// change objects in place: nobody else has seen them yet, and a second allocation
// for each would raise the peak that a cold start is measured by.

// transform makes a TransformFunc of a function on one type, passing by what is not
// of that type.
func transform[T any](keep func(*T)) cache.TransformFunc {
	return func(in any) (any, error) {
		if object, ok := in.(*T); ok {
			keep(object)
		}
		return in, nil
	}
}

// identity is the metadata no cached object can do without: its key, and the version
// by which event handlers tell a change from a repetition.
func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            meta.Name,
		Namespace:       meta.Namespace,
		UID:             meta.UID,
		ResourceVersion: meta.ResourceVersion,
		Generation:      meta.Generation,
	}
}

// keepNeeded leaves of a Widget what a typical reconcile compares.
func keepNeeded(widget *api.Widget) {
	meta := identity(&widget.ObjectMeta)
	meta.Labels = widget.Labels
	*widget = api.Widget{
		ObjectMeta: meta,
		Spec:       api.WidgetSpec{Size: widget.Spec.Size, Color: widget.Spec.Color},
		Status:     api.WidgetStatus{Ready: widget.Status.Ready},
	}
}

// keepColor leaves of a ConfigMap the one value noop compares.
func keepColor(configMap *corev1.ConfigMap) {
	slim := corev1.ConfigMap{ObjectMeta: identity(&configMap.ObjectMeta)}
	if color, ok := configMap.Data[colorKey]; ok {
		slim.Data = map[string]string{colorKey: color}
	}
	*configMap = slim
}

// slimChild leaves what an owner reads of any child: whom it belongs to, and the digest
// of what was applied last.
func slimChild(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	slim := identity(meta)
	slim.OwnerReferences = meta.OwnerReferences
	if digest, ok := meta.Annotations[appliedAnnotation]; ok {
		slim.Annotations = map[string]string{appliedAnnotation: digest}
	}
	return slim
}

func keepServiceAccount(object *corev1.ServiceAccount) {
	*object = corev1.ServiceAccount{ObjectMeta: slimChild(&object.ObjectMeta)}
}

func keepConfigMap(object *corev1.ConfigMap) {
	*object = corev1.ConfigMap{ObjectMeta: slimChild(&object.ObjectMeta)}
}

func keepSecret(object *corev1.Secret) {
	*object = corev1.Secret{ObjectMeta: slimChild(&object.ObjectMeta)}
}

func keepService(object *corev1.Service) {
	*object = corev1.Service{ObjectMeta: slimChild(&object.ObjectMeta)}
}

// keepDeployment also keeps the two numbers that readiness is computed from.
func keepDeployment(object *appsv1.Deployment) {
	*object = appsv1.Deployment{
		ObjectMeta: slimChild(&object.ObjectMeta),
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: object.Status.ObservedGeneration,
			AvailableReplicas:  object.Status.AvailableReplicas,
		},
	}
}
