package main

import (
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/bench/api"
)

func testWidget() *api.Widget {
	return &api.Widget{
		ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "n", UID: "u", Generation: 3},
		Spec: api.WidgetSpec{
			Size: 1, Color: "red", Image: "i", Replicas: 2, Notes: "n",
			Env:    []api.EnvVar{{Name: "N", Value: "V"}},
			Config: map[string]string{"b": "2", "a": "1", "color": "its own"},
		},
	}
}

// digests are what the tuned row compares, child by child.
func digests(t *testing.T, widget *api.Widget) []string {
	t.Helper()
	wanted, err := childrenOf(widget)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, child := range wanted.all() {
		encoded, err := json.Marshal(child.apply)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, digest(encoded))
	}
	return all
}

func TestTheSameWidgetHasTheSameChildren(t *testing.T) {
	first := digests(t, testWidget())
	for range 20 { // maps come in another order each time
		if again := digests(t, testWidget()); !slices.Equal(first, again) {
			t.Fatalf("digests %v, then %v", first, again)
		}
	}
}

func TestAColorReachesOnlyTheConfigMapAndThePodsThatMountIt(t *testing.T) {
	before := digests(t, testWidget())
	widget := testWidget()
	widget.Spec.Color = "blue"
	after := digests(t, widget)

	var changed []int
	for i := range before {
		if before[i] != after[i] {
			changed = append(changed, i)
		}
	}
	if !slices.Equal(changed, []int{1, 4}) {
		t.Errorf("children %v changed, want the ConfigMap (1) and the Deployment (4)", changed)
	}
}

func TestAWidgetsOwnKeysDoNotHideColorAndSize(t *testing.T) {
	data := configData(&testWidget().Spec)
	if data["color"] != "red" || data["size"] != "1" || data["config.color"] != "its own" {
		t.Errorf("data is %v", data)
	}
}

func TestADeploymentIsRolledOutAtItsGenerationAndScale(t *testing.T) {
	for name, c := range map[string]struct {
		observed  int64
		available int32
		want      bool
	}{
		"not observed":  {observed: 1, available: 2, want: false},
		"not available": {observed: 2, available: 1, want: false},
		"available":     {observed: 2, available: 2, want: true},
	} {
		wanted, err := childrenOf(testWidget())
		if err != nil {
			t.Fatal(err)
		}
		wanted.deployment.cached = &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: c.observed, AvailableReplicas: c.available},
		}
		if got := wanted.rolledOut(2); got != c.want {
			t.Errorf("%s: rolled out is %v", name, got)
		}

		// The same in the answer to an apply.
		answer, err := json.Marshal(wanted.deployment.cached)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer, wanted.deployment.apply); err != nil {
			t.Fatal(err)
		}
		wanted.deployment.cached, wanted.deployment.fresh = nil, true
		if got := wanted.rolledOut(2); got != c.want {
			t.Errorf("%s, applied: rolled out is %v", name, got)
		}
	}
}

func TestAStatusThatSaysNothingNewIsTheSame(t *testing.T) {
	widget := testWidget()
	widget.Status = *statusOf(widget, true)
	if again := statusOf(widget, true); !sameStatus(&widget.Status, again) {
		t.Errorf("status is %+v, then %+v", widget.Status, again)
	}
	if progressing := statusOf(widget, false); sameStatus(&widget.Status, progressing) || progressing.Ready {
		t.Errorf("status did not change: %+v", progressing)
	}
	if !widget.Status.Ready {
		t.Error("the cached status was changed")
	}
}
