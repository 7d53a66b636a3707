// Package api holds the Go types of bench/crds/widgets.yaml: the one custom
// resource both programs of the benchmark work on.
//
// +kubebuilder:object:generate=true
// +groupName=bench.windlass.dev
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of Widget.
var GroupVersion = schema.GroupVersion{Group: "bench.windlass.dev", Version: "v1"}

// WidgetGVK names the kind where only its metadata is cached.
var WidgetGVK = GroupVersion.WithKind("Widget")

// AddToScheme registers Widget and WidgetList.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
