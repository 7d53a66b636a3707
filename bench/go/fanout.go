package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"windlass.dev/bench/api"
)

// Fanout mode: an operator that keeps five children for every Widget.

const (
	fieldManager  = "bench"
	finalizerName = "bench.windlass.dev/finalizer"

	phaseReady       = "Ready"
	phaseProgressing = "Progressing"
)

type fanout struct {
	client.Client
	finalizer bool
	// skipUnchanged is the tuned row's: see ensure.
	skipUnchanged bool
}

func runFanout(ctx context.Context, s *subject) error {
	mgr, err := s.newManager(func(options *ctrl.Options) {
		options.Client.FieldOwner = fieldManager
		if s.tuned {
			tuneFanout(options)
		}
	})
	if err != nil {
		return err
	}

	err = ctrl.NewControllerManagedBy(mgr).
		// Without it every write of a status or a finalizer would come back as an
		// event and a reconcile for nothing. Deletion does raise the generation.
		For(&api.Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ServiceAccount{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.Deployment{}).
		Complete(&fanout{Client: mgr.GetClient(), finalizer: s.finalizer, skipUnchanged: s.tuned})
	if err != nil {
		return err
	}

	if err := s.announce(mgr, &api.Widget{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{},
		&corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// tuneFanout keeps of the children only what the reconcile reads, and has reads wait
// for this program's own writes.
//
// The wait goes well with skipping: the event of one child arrives before those of
// its siblings, and a reconcile that reads a cache which has not seen them yet, or the
// last status, would write them a second time.
func tuneFanout(options *ctrl.Options) {
	options.Cache.ByObject = map[client.Object]cache.ByObject{
		&corev1.ServiceAccount{}: {Transform: transform(keepServiceAccount)},
		&corev1.ConfigMap{}:      {Transform: transform(keepConfigMap)},
		&corev1.Secret{}:         {Transform: transform(keepSecret)},
		&corev1.Service{}:        {Transform: transform(keepService)},
		&appsv1.Deployment{}:     {Transform: transform(keepDeployment)},
	}
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
}

// Reconcile brings the children of one Widget to the state that its spec describes.
func (f *fanout) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	widget := &api.Widget{}
	if err := f.Get(ctx, req.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, f.release(ctx, widget)
	}
	widget, err := f.hold(ctx, widget)
	if err != nil {
		return ctrl.Result{}, err
	}

	wanted, err := childrenOf(widget)
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, child := range wanted.all() {
		if err := f.ensure(ctx, child); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, f.report(ctx, widget, wanted.rolledOut(widget.Spec.Replicas))
}

// hold adds the finalizer before any child exists.
func (f *fanout) hold(ctx context.Context, widget *api.Widget) (*api.Widget, error) {
	if !f.finalizer || controllerutil.ContainsFinalizer(widget, finalizerName) {
		return widget, nil
	}
	held := widget.DeepCopy()
	controllerutil.AddFinalizer(held, finalizerName)
	if err := f.patchFinalizers(ctx, widget, held); err != nil {
		return nil, fmt.Errorf("add finalizer: %w", err)
	}
	return held, nil
}

// release removes the finalizer of a deleted Widget. The garbage collector deletes
// its children.
func (f *fanout) release(ctx context.Context, widget *api.Widget) error {
	if !controllerutil.ContainsFinalizer(widget, finalizerName) {
		return nil
	}
	released := widget.DeepCopy()
	controllerutil.RemoveFinalizer(released, finalizerName)
	if err := f.patchFinalizers(ctx, widget, released); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// patchFinalizers sends the difference. A merge patch replaces the whole list, so it
// names the version it was computed from, so that it cannot undo changes of others.
func (f *fanout) patchFinalizers(ctx context.Context, from, to *api.Widget) error {
	return f.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
}

// report writes the status if it has changed.
func (f *fanout) report(ctx context.Context, widget *api.Widget, ready bool) error {
	status := statusOf(widget, ready)
	if sameStatus(&widget.Status, status) {
		return nil
	}
	err := f.Status().Apply(ctx, api.ApplyStatus(widget.Name, widget.Namespace, status), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("apply status: %w", err)
	}
	return nil
}

func sameStatus(a, b *api.WidgetStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// statusOf is the status a Widget should have; the condition's transition time only
// moves when the condition does.
func statusOf(widget *api.Widget, ready bool) *api.WidgetStatus {
	status := widget.Status.DeepCopy()
	status.ObservedGeneration = widget.Generation
	status.Ready = ready
	condition := metav1.Condition{
		Type:               api.ConditionReady,
		ObservedGeneration: widget.Generation,
	}
	if ready {
		status.Phase = phaseReady
		condition.Status, condition.Reason = metav1.ConditionTrue, "DeploymentAvailable"
		condition.Message = "All replicas are available."
	} else {
		status.Phase = phaseProgressing
		condition.Status, condition.Reason = metav1.ConditionFalse, "DeploymentProgressing"
		condition.Message = "Waiting for replicas to become available."
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}
