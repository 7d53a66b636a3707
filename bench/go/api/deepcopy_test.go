package api

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func fullWidget() *Widget {
	return &Widget{
		TypeMeta:   metav1.TypeMeta{Kind: "Widget", APIVersion: GroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"}},
		Spec: WidgetSpec{
			Size: 1, Color: "red", Image: "i", Replicas: 2, Notes: "n",
			Args:   []string{"x"},
			Env:    []EnvVar{{Name: "N", Value: "V"}},
			Config: map[string]string{"k": "v"},
		},
		Status: WidgetStatus{
			ObservedGeneration: 1, Phase: "Ready", Ready: true,
			Conditions: []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue}},
		},
	}
}

// This test fails for a field that a later change adds to the types until fullWidget
// sets it. TestDeepCopyIsEqualAndSharesNothing then fails if the field is not copied.
func TestFullWidgetLeavesNoFieldOut(t *testing.T) {
	widget := fullWidget()
	for _, part := range []any{widget.Spec, widget.Status} {
		value := reflect.ValueOf(part)
		for i := range value.NumField() {
			if value.Field(i).IsZero() {
				t.Errorf("%s.%s is not set", value.Type(), value.Type().Field(i).Name)
			}
		}
	}
}

func TestDeepCopyIsEqualAndSharesNothing(t *testing.T) {
	original, list := fullWidget(), &WidgetList{Items: []Widget{*fullWidget()}}
	for name, copied := range map[string]*Widget{
		"alone":     original.DeepCopyObject().(*Widget),
		"in a list": &list.DeepCopyObject().(*WidgetList).Items[0],
	} {
		if !reflect.DeepEqual(copied, original) {
			t.Errorf("%s: the copy differs: %+v", name, copied)
		}
		copied.Labels["a"] = "changed"
		copied.Finalizers[0] = "changed"
		copied.Spec.Args[0] = "changed"
		copied.Spec.Env[0].Value = "changed"
		copied.Spec.Config["k"] = "changed"
		copied.Status.Conditions[0].Reason = "changed"
	}
	if !reflect.DeepEqual(original, fullWidget()) || !reflect.DeepEqual(&list.Items[0], fullWidget()) {
		t.Error("a change to a copy reached its original")
	}
}
