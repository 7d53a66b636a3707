package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// zapTo writes lines that hold neither time nor stack, so that two can be compared.
func zapTo(out *bytes.Buffer) logr.Logger {
	return zap.New(zap.WriteTo(out), zap.StacktraceLevel(zapcore.FatalLevel),
		zap.JSONEncoder(func(config *zapcore.EncoderConfig) { config.TimeKey = "" }))
}

func TestLazyLoggerWritesTheLinesOfItsBase(t *testing.T) {
	var plain, lazy bytes.Buffer
	for _, logger := range []logr.Logger{zapTo(&plain), newLazyLogger(zapTo(&lazy))} {
		logger.Info("no values")
		controller := logger.WithName("controller").WithValues("kind", "Widget")
		one := controller.WithValues("name", "one")
		two := controller.WithValues("name", "two")
		one.Info("first", "extra", 1)
		two.Error(errors.New("broken"), "second")
		two.WithName("deeper").Info("third")
		one.V(1).Info("too detailed to be written")
	}
	if lazy.Len() == 0 || lazy.String() != plain.String() {
		t.Errorf("the lines differ:\n%s\nwant:\n%s", &lazy, &plain)
	}
}
