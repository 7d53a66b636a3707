package main

import (
	"flag"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// The forms in which cache mode can hold a kind.
const (
	formFull     = "full"
	formNeeded   = "needed"
	formMetadata = "metadata"
)

// The kinds cache mode can hold.
const (
	kindWidget    = "widget"
	kindConfigMap = "configmap"
)

// flags is the command line, the same for both programs of the benchmark.
type flags struct {
	workers int
	tuned   bool
	health  string
	metrics string

	form        string
	kind        string
	page        bool
	controllers int

	finalizer bool

	lease     string
	namespace string
	slow      bool
}

func parseFlags(mode string, args []string) (flags, error) {
	var f flags
	fs := flag.NewFlagSet("bench-go "+mode, flag.ContinueOnError)

	// --kubeconfig, with the loading rules every controller-runtime program has.
	config.RegisterFlags(fs)
	fs.IntVar(&f.workers, "workers", 1, "concurrent reconciles of a controller")
	fs.BoolVar(&f.tuned, "tuned", false, "use the settings of the tuned row")
	fs.StringVar(&f.health, "health", "0", `address of /healthz and /readyz; "0" turns them off`)
	fs.StringVar(&f.metrics, "metrics", "127.0.0.1:0", `address of /metrics; "0" turns them off`)
	// The other program sizes its thread pool with this; Go has GOMAXPROCS.
	fs.Int("threads", 1, "ignored: set GOMAXPROCS instead")

	fs.StringVar(&f.form, "form", formFull, "cache: full, needed or metadata")
	fs.StringVar(&f.kind, "kind", kindWidget, "cache: widget or configmap")
	fs.BoolVar(&f.page, "page", false, "cache: start with a paged list instead of a watch-list")
	fs.IntVar(&f.controllers, "controllers", 0, "cache: controllers that share the kind")

	fs.BoolVar(&f.finalizer, "finalizer", false, "fanout: hold Widgets with a finalizer")

	fs.StringVar(&f.lease, "lease", "", "life: name of the Lease to be elected with")
	fs.StringVar(&f.namespace, "namespace", "default", "life: namespace of the Lease")
	fs.BoolVar(&f.slow, "slow", false, "life: Widgets of color slow take a second")

	if err := fs.Parse(args); err != nil {
		return f, err
	}
	return f, f.validate(fs.Args())
}

func (f *flags) validate(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case f.workers < 1:
		return fmt.Errorf("--workers must be at least 1, not %d", f.workers)
	case f.form != formFull && f.form != formNeeded && f.form != formMetadata:
		return fmt.Errorf("--form must be full, needed or metadata, not %q", f.form)
	case f.kind != kindWidget && f.kind != kindConfigMap:
		return fmt.Errorf("--kind must be widget or configmap, not %q", f.kind)
	}
	return nil
}
