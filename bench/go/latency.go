package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"windlass.dev/bench/api"
)

// Latency mode: the time of an event from its sender to the reconcile.

const (
	sentAnnotation = "bench.windlass.dev/sent"
	backlogPrefix  = "backlog-"
	backlogTime    = 2 * time.Millisecond
)

type latencyReport struct {
	Event string  `json:"event"`
	Nanos []int64 `json:"ns"`
	Seen  int     `json:"seen"`
}

type latency struct {
	*subject
	client.Client
	queue chan requestQueue

	mu    sync.Mutex
	last  map[types.NamespacedName]int64
	nanos []int64
}

func runLatency(ctx context.Context, s *subject) error {
	mgr, err := s.newManager(nil)
	if err != nil {
		return err
	}
	l := &latency{
		subject: s,
		Client:  mgr.GetClient(),
		queue:   make(chan requestQueue, 1),
		last:    map[types.NamespacedName]int64{},
		nanos:   []int64{}, // an empty report is [], not null
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&api.Widget{}).
		WatchesRawSource(source.Func(func(_ context.Context, queue requestQueue) error {
			l.queue <- queue // to put the backlog in
			return nil
		})).
		Complete(l)
	if err != nil {
		return err
	}
	if err := s.announce(mgr, &api.Widget{}); err != nil {
		return err
	}
	if err := mgr.Add(background(l.serve)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// Reconcile records when it saw a Widget with a new stamp. Keys of the backlog
// belong to no Widget and only take time.
func (l *latency) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if strings.HasPrefix(req.Name, backlogPrefix) {
		time.Sleep(backlogTime)
		return ctrl.Result{}, nil
	}

	var widget api.Widget
	if err := l.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	stamp, ok := widget.Annotations[sentAnnotation]
	if !ok {
		return ctrl.Result{}, nil
	}
	now := time.Now().UnixNano()
	sent, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		// A retry would not help: the Widget needs a new stamp.
		ctrl.LoggerFrom(ctx).Error(err, "Ignoring a malformed stamp", "stamp", stamp)
		return ctrl.Result{}, nil
	}
	l.record(req.NamespacedName, sent, now-sent)
	return ctrl.Result{}, nil
}

// record counts a stamp once: a Widget may be reconciled again with an old one.
func (l *latency) record(key types.NamespacedName, sent, nanos int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last[key] == sent {
		return
	}
	l.last[key] = sent
	l.nanos = append(l.nanos, nanos)
}

func (l *latency) serve(ctx context.Context) error {
	var queue requestQueue
	select {
	case queue = <-l.queue:
	case <-ctx.Done():
		return nil
	}
	return l.serveCommands(ctx, os.Stdin, map[string]command{
		"report": func(context.Context, []string) error {
			nanos := l.take()
			l.out.emit(latencyReport{Event: "latencies", Nanos: nanos, Seen: len(nanos)})
			return nil
		},
		"backlog": func(_ context.Context, args []string) error {
			n, err := countArgument(args)
			if err != nil {
				return err
			}
			return addBacklog(queue, n)
		},
	})
}

// take returns the latencies since the last call.
func (l *latency) take() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	nanos := l.nanos
	l.nanos = []int64{}
	return nanos
}

// addBacklog enqueues n keys at the priority controller-runtime gives to what it
// lists at start: behind anything fresh.
func addBacklog(queue requestQueue, n int) error {
	prioritized, ok := queue.(priorityqueue.PriorityQueue[ctrl.Request])
	if !ok {
		return fmt.Errorf("the queue has no priorities: it is a %T", queue)
	}
	keys := make([]ctrl.Request, n)
	for i := range keys {
		keys[i].Name = backlogPrefix + strconv.Itoa(i)
	}
	prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, keys...)
	return nil
}
