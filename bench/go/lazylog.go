package main

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink is a log sink of the tuned row that puts off what most loggers never need.
//
// controller-runtime makes a logger for every reconcile and gives it six values, and
// zapr encodes them to JSON there and then. That was a third of the CPU of a no-op
// reconcile, spent on lines that are never written. This sink only remembers the
// values and hands them on with the first line; what is logged is the same.
type lazySink struct {
	base   logr.LogSink
	values []any
}

func newLazyLogger(base logr.Logger) logr.Logger {
	return logr.New(&lazySink{base: base.GetSink()})
}

// Init implements logr.LogSink; the base was initialised as a logger of its own.
func (s *lazySink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *lazySink) Enabled(level int) bool { return s.base.Enabled(level) }

// Info implements logr.LogSink.
func (s *lazySink) Info(level int, msg string, keysAndValues ...any) {
	s.sink().Info(level, msg, keysAndValues...)
}

// Error implements logr.LogSink.
func (s *lazySink) Error(err error, msg string, keysAndValues ...any) {
	s.sink().Error(err, msg, keysAndValues...)
}

// WithValues implements logr.LogSink.
func (s *lazySink) WithValues(keysAndValues ...any) logr.LogSink {
	// A sibling may share the prefix, so it must not share the space behind it.
	return &lazySink{base: s.base, values: append(slices.Clip(s.values), keysAndValues...)}
}

// WithName implements logr.LogSink.
func (s *lazySink) WithName(name string) logr.LogSink {
	return &lazySink{base: s.sink().WithName(name)}
}

func (s *lazySink) sink() logr.LogSink {
	if len(s.values) == 0 {
		return s.base
	}
	return s.base.WithValues(s.values...)
}
