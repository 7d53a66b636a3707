// Command controlplane is a whole Kubernetes control plane in one file: the
// name that it is started by selects the component. Hard links give it the names.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwoksignals "sigs.k8s.io/kwok/pkg/utils/signals"

	"windlass.dev/testenv/controlplane/supervise"
)

func main() {
	os.Exit(run(filepath.Base(os.Args[0])))
}

func run(name string) int {
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return cli.Run(controllermanager.NewControllerManagerCommand())
	case "kube-scheduler":
		return cli.Run(scheduler.NewSchedulerCommand())
	case "kubectl":
		resetFlags()
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err) // prints it as kubectl does, and exits
		}
		return 0
	case "kwok":
		return runKwok()
	case "supervise":
		return supervise.Main(os.Args[1:])
	default:
		fmt.Fprintf(os.Stderr, "%s: start this file under one of the names %s\n", name, strings.Join(names, ", "))
		return 2
	}
}

// names are the hard links that the build makes.
var names = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl", "supervise"}

func runKwok() int {
	resetFlags()
	ctx := kwoksignals.SetupSignalContext()
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := kwoklog.InitFlags(ctx, flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		logger.Error("Cannot read the configuration", "err", err)
		return 1
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Stopped", "err", err)
		return 1
	}
	return 0
}

// resetFlags clears the process-wide flag sets: component-base registers a
// --version there that is not a boolean, which breaks kwok and kubectl.
func resetFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
}
