package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"windlass.dev/bench/api"
)

// newScheme registers the groups the benchmark uses and no others. A scaffolded
// project registers all of Kubernetes; that costs memory and start-up time and buys
// nothing here, so neither row pays for it.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		corev1.AddToScheme,
		appsv1.AddToScheme,
		coordinationv1.AddToScheme, // leader election records events about its Lease
		api.AddToScheme,
	)
	return scheme, builder.AddToScheme(scheme)
}

// newManager builds the manager of a mode. adjust may change its options, which are
// controller-runtime's defaults, except for those with a comment here.
func (s *subject) newManager(adjust func(*ctrl.Options)) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	// Besides loading the file, GetConfig turns client-go's rate limiter off.
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}

	options := ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: s.health,
		Metrics:                metricsserver.Options{BindAddress: s.metrics},
		Controller:             config.Controller{MaxConcurrentReconciles: s.workers},
		// The resync every ten hours would do no harm, but the rules of the benchmark turn it off.
		Cache: cache.Options{SyncPeriod: new(time.Duration(0))},
	}
	if s.tuned {
		tune(&options)
	}
	if adjust != nil {
		adjust(&options)
	}

	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, nil
}

// tune applies what every mode of the tuned row has; modes add transforms that know
// what they read. GOMEMLIMIT is the third part and comes from the environment.
func tune(options *ctrl.Options) {
	// No code here reads managedFields, which are often a third of an object.
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	// Reads share memory with the cache: no reconciler may write to what it got
	// without a copy of its own.
	options.Cache.DefaultUnsafeDisableDeepCopy = new(true)
}

// background is a task that runs on every replica once the manager's caches are up.
type background func(context.Context) error

// Start implements manager.Runnable.
func (b background) Start(ctx context.Context) error { return b(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (background) NeedLeaderElection() bool { return false }

// waitForCaches returns when the informers of all these kinds have synced; it starts
// those that no controller has started yet.
func waitForCaches(ctx context.Context, mgr ctrl.Manager, kinds ...client.Object) error {
	for _, kind := range kinds {
		if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("wait for the cache of %T: %w", kind, err)
		}
	}
	return nil
}

// announce prints "started" when the caches of these kinds have synced.
func (s *subject) announce(mgr ctrl.Manager, kinds ...client.Object) error {
	return mgr.Add(background(func(ctx context.Context) error {
		if err := waitForCaches(ctx, mgr, kinds...); err != nil {
			return err
		}
		s.out.emit(plainEvent{Event: "started"})
		return nil
	}))
}
