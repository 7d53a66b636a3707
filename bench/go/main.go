// Command bench-go is the Go side of the side-by-side benchmark: one program, built
// on controller-runtime, with a mode for each workload.
//
// It answers on standard output with one JSON object a line, logs to standard error
// and, in the modes that say so, takes commands as lines on standard input.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// subject is passed to every mode: its flags, its output and a way to end itself.
type subject struct {
	flags
	out  *reporter
	stop context.CancelFunc
}

var modes = map[string]func(context.Context, *subject) error{
	"cache":   runCache,
	"noop":    runNoop,
	"fanout":  runFanout,
	"life":    runLife,
	"idle":    runLife, // life, in a cluster without Widgets
	"latency": runLatency,
	"queue":   runQueue,
	"version": runVersion,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, "bench-go:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: bench-go MODE [flags]; modes: %v", modeNames())
	}
	mode, ok := modes[args[0]]
	if !ok {
		return fmt.Errorf("unknown mode %q; modes: %v", args[0], modeNames())
	}
	parsed, err := parseFlags(args[0], args[1:])
	if err != nil {
		return err
	}

	// zap's production settings: JSON, info level, to standard error. client-go logs
	// through klog, which would otherwise write its own text format beside it.
	logger := zap.New()
	if parsed.tuned {
		logger = newLazyLogger(logger)
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	ctx, stop := context.WithCancel(ctrl.SetupSignalHandler())
	defer stop()
	return mode(ctx, &subject{flags: parsed, out: newReporter(os.Stdout), stop: stop})
}

func modeNames() []string {
	names := make([]string, 0, len(modes))
	for name := range modes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
