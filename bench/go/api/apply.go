package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// StatusApply is the apply configuration of a Widget's status subresource: the part
// of what applyconfiguration-gen would write that the benchmark sends.
//
// Fields that can be false or zero have no omitempty: what is left out of an apply
// is given up by its field manager, and "not ready" must be said, not withdrawn.
type StatusApply struct {
	metav1ac.TypeMetaApplyConfiguration    `json:",inline"`
	*metav1ac.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Status StatusFields `json:"status"`
}

// StatusFields are the fields of a Widget's status that the operator owns.
type StatusFields struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Phase              string             `json:"phase"`
	Ready              bool               `json:"ready"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// ApplyStatus addresses the status of one Widget.
func ApplyStatus(name, namespace string, status *WidgetStatus) *StatusApply {
	apply := &StatusApply{
		ObjectMetaApplyConfiguration: &metav1ac.ObjectMetaApplyConfiguration{Name: &name, Namespace: &namespace},
		Status:                       StatusFields(*status),
	}
	apply.WithKind(WidgetGVK.Kind).WithAPIVersion(GroupVersion.String())
	return apply
}

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (*StatusApply) IsApplyConfiguration() {}
