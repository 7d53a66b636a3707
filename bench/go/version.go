package main

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
)

// Version mode: what the numbers are numbers of, as the linker recorded it.

const frameworkModule = "sigs.k8s.io/controller-runtime"

type versionReport struct {
	Event     string `json:"event"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	Toolchain string `json:"toolchain"`
}

func runVersion(_ context.Context, s *subject) error {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this binary was built without module information")
	}
	for _, module := range build.Deps {
		if module.Path == frameworkModule {
			s.out.emit(versionReport{
				Event:     "version",
				Name:      "controller-runtime",
				Version:   module.Version,
				Toolchain: runtime.Version(),
			})
			return nil
		}
	}
	return errors.New("this binary does not say which version of " + frameworkModule + " it has")
}
