package main

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"windlass.dev/bench/api"
)

// Life mode: start, stop and failover, each visible from outside. Without Widgets
// and commands it also measures the memory of an idle operator.

const (
	slowColor = "slow"
	slowTime  = time.Second
)

type lifeReconciled struct {
	Event   string `json:"event"`
	Name    string `json:"name"`
	AtNanos int64  `json:"at_ns"`
}

type lifeFinished struct {
	Event string `json:"event"`
	Name  string `json:"name"`
}

type lifeLeading struct {
	Event   string `json:"event"`
	AtNanos int64  `json:"at_ns"`
}

type life struct {
	client.Client
	out  *reporter
	slow bool
}

func runLife(ctx context.Context, s *subject) error {
	mgr, err := s.newManager(s.electLeader)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&api.Widget{}).
		Complete(&life{Client: mgr.GetClient(), out: s.out, slow: s.slow})
	if err != nil {
		return err
	}

	if s.lease != "" {
		go func() {
			select {
			case <-mgr.Elected():
				s.out.emit(lifeLeading{Event: "leading", AtNanos: time.Now().UnixNano()})
			case <-ctx.Done():
			}
		}()
	}
	return mgr.Start(ctx)
}

// electLeader sets up leader election if a Lease is named. The three durations are
// controller-runtime's defaults, spelt out because the benchmark depends on them.
func (s *subject) electLeader(options *ctrl.Options) {
	if s.lease == "" {
		return
	}
	options.LeaderElection = true
	options.LeaderElectionID = s.lease
	options.LeaderElectionNamespace = s.namespace
	options.LeaseDuration = new(15 * time.Second)
	options.RenewDeadline = new(10 * time.Second)
	options.RetryPeriod = new(2 * time.Second)
	// Safe since the process ends as soon as the manager does.
	options.LeaderElectionReleaseOnCancel = true
	if s.tuned {
		// A standby fills its caches and its queue before it is needed.
		options.Controller.EnableWarmup = new(true)
	}
}

// Reconcile reports that it ran and, for a slow Widget, that it was allowed to finish.
func (l *life) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	l.out.emit(lifeReconciled{Event: "reconciled", Name: req.Name, AtNanos: time.Now().UnixNano()})

	var widget api.Widget
	if err := l.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if l.slow && widget.Spec.Color == slowColor {
		// Ignores the context on purpose: it stands for work that must not be interrupted.
		time.Sleep(slowTime)
		l.out.emit(lifeFinished{Event: "finished", Name: req.Name})
	}
	return ctrl.Result{}, nil
}
