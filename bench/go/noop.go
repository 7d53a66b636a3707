package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"windlass.dev/bench/api"
)

// Noop mode: the cost of a reconcile that finds nothing to do.

const (
	colorKey = "color"

	// floodBuffer is the bound of the channel source, the same in both programs. It
	// is also controller-runtime's default.
	floodBuffer = 1024
)

type (
	requestQueue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	requestEvent = event.TypedGenericEvent[ctrl.Request]
)

type noop struct {
	*subject
	client.Client
	mgr   ctrl.Manager
	tally tally

	// flood carries requests, not objects: a channel source may carry anything, and
	// an object for each would only be garbage.
	flood chan requestEvent
	queue chan requestQueue
}

type noopSynced struct {
	Event string `json:"event"`
	Count int    `json:"count"`
}

type noopFlooded struct {
	Event      string `json:"event"`
	Sent       int    `json:"sent"`
	Reconciled int64  `json:"reconciled"`
	Distinct   int    `json:"distinct"`
	Mismatches int64  `json:"mismatches"`
	WallNanos  int64  `json:"wall_ns"`
	CPUNanos   int64  `json:"cpu_ns"`
}

func runNoop(ctx context.Context, s *subject) error {
	mgr, err := s.newManager(func(options *ctrl.Options) {
		if s.tuned {
			options.Cache.ByObject = map[client.Object]cache.ByObject{
				&api.Widget{}:       {Transform: transform(keepNeeded)},
				&corev1.ConfigMap{}: {Transform: transform(keepColor)},
			}
		}
	})
	if err != nil {
		return err
	}
	n := &noop{
		subject: s,
		Client:  mgr.GetClient(),
		mgr:     mgr,
		flood:   make(chan requestEvent),
		queue:   make(chan requestQueue, 1),
	}
	n.tally.reset()

	enqueue := handler.TypedFuncs[ctrl.Request, ctrl.Request]{
		GenericFunc: func(_ context.Context, evt requestEvent, queue requestQueue) {
			queue.Add(evt.Object)
			n.tally.enqueued.Add(1)
		},
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&api.Widget{}).
		WatchesRawSource(source.TypedChannel(n.flood, enqueue,
			source.WithBufferSize[ctrl.Request, ctrl.Request](floodBuffer))).
		WatchesRawSource(source.Func(func(_ context.Context, queue requestQueue) error {
			n.queue <- queue // to be asked at the end of a flood whether it is empty
			return nil
		})).
		Complete(n)
	if err != nil {
		return err
	}

	// Reconciles read ConfigMaps but no controller watches them. Asking for the
	// informer before the start spares the first reconcile the wait.
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	if err := mgr.Add(background(n.serve)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// Reconcile compares a Widget with the ConfigMap of the same name, both cached.
func (n *noop) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	n.tally.begin(req)
	defer n.tally.end()

	var widget api.Widget
	if err := n.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var configMap corev1.ConfigMap
	if err := n.Get(ctx, req.NamespacedName, &configMap); err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	if configMap.Data[colorKey] != widget.Spec.Color {
		n.tally.mismatches.Add(1)
	}
	return ctrl.Result{}, nil
}

// serve waits for the first reconcile of every key, then answers commands.
func (n *noop) serve(ctx context.Context) error {
	var queue requestQueue
	select {
	case queue = <-n.queue:
	case <-ctx.Done():
		return nil
	}
	keys, err := n.keys(ctx)
	if err != nil {
		return err
	}
	if _, err := n.drained(ctx, queue, func() bool { return n.tally.distinct() >= len(keys) }); err != nil {
		return err
	}
	n.out.emit(noopSynced{Event: "synced", Count: len(keys)})

	return n.serveCommands(ctx, os.Stdin, map[string]command{
		"flood": func(ctx context.Context, args []string) error {
			total, err := countArgument(args)
			if err != nil {
				return err
			}
			keys, err := n.keys(ctx)
			if err != nil {
				return err
			}
			return n.measure(ctx, queue, "flooded", keys, total)
		},
		"resync": func(ctx context.Context, _ []string) error {
			keys, err := n.keys(ctx)
			if err != nil {
				return err
			}
			return n.measure(ctx, queue, "resynced", keys, len(keys))
		},
	})
}

// keys lists the cached Widgets.
func (n *noop) keys(ctx context.Context) ([]ctrl.Request, error) {
	objects, err := cached(ctx, n.mgr, &api.Widget{})
	if err != nil {
		return nil, err
	}
	keys := make([]ctrl.Request, 0, len(objects))
	for _, object := range objects {
		widget, ok := object.(*api.Widget)
		if !ok {
			return nil, fmt.Errorf("the cache of Widgets holds a %T", object)
		}
		keys = append(keys, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(widget)})
	}
	return keys, nil
}

// measure sends total requests, round robin over the keys and as fast as they are
// taken, and prints the result once the queue is empty.
func (n *noop) measure(
	ctx context.Context, queue requestQueue, name string, keys []ctrl.Request, total int,
) error {
	if len(keys) == 0 {
		return errors.New("there are no Widgets to enqueue")
	}
	n.tally.reset()
	begin, err := now()
	if err != nil {
		return err
	}

	for i := range total {
		select {
		case n.flood <- requestEvent{Object: keys[i%len(keys)]}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	end, err := n.drained(ctx, queue, func() bool { return n.tally.enqueued.Load() == int64(total) })
	if err != nil {
		return err
	}

	n.out.emit(noopFlooded{
		Event:      name,
		Sent:       total,
		Reconciled: n.tally.finished.Load(),
		Distinct:   n.tally.distinct(),
		Mismatches: n.tally.mismatches.Load(),
		WallNanos:  end.wall.Sub(begin.wall).Nanoseconds(),
		CPUNanos:   (end.cpu - begin.cpu).Nanoseconds(),
	})
	return nil
}
