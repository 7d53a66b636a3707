package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionReady is the one condition of a Widget.
const ConditionReady = "Ready"

// WidgetSpec has the few fields a reconcile reads and the many it does not, as
// specs of real operators have.
type WidgetSpec struct {
	Size     int64             `json:"size"`
	Color    string            `json:"color"`
	Image    string            `json:"image,omitempty"`
	Replicas int32             `json:"replicas"`
	Args     []string          `json:"args,omitempty"`
	Env      []EnvVar          `json:"env,omitempty"`
	Config   map[string]string `json:"config,omitempty"`
	Notes    string            `json:"notes,omitempty"`
}

// EnvVar is a plain name and value; the benchmark needs no references.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// WidgetStatus is what the fanout mode reports.
type WidgetStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Ready              bool               `json:"ready,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Widget is the custom resource of the benchmark.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitzero"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}
