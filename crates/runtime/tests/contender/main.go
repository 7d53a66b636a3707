// Contender is a candidate written with client-go. The tests of leader election let it contend with ours for one Lease.
//
// It leads for a while, stops, releases, and is a candidate again, until it is killed or its standard input is closed. While
// it leads it writes a line every few milliseconds, `<identity> <nanoseconds since 1970>`: what it does not write, it
// did not do.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const tick = 5 * time.Millisecond

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	namespace := flag.String("namespace", "", "namespace of the Lease")
	name := flag.String("name", "", "name of the Lease")
	identity := flag.String("identity", "", "who this is; each campaign appends its number")
	leads := flag.Duration("leads", time.Second, "for how long it leads")
	rests := flag.Duration("rests", time.Second, "how long it waits before it is a candidate again")
	lease := flag.Duration("lease-duration", 3*time.Second, "lease duration")
	deadline := flag.Duration("renew-deadline", 2*time.Second, "renew deadline")
	retry := flag.Duration("retry-period", 500*time.Millisecond, "retry period")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	client, err := coordination.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	go func() {
		// The parent holds the other end: when it is gone, nobody needs us.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for campaign := 1; ; campaign++ {
		who := fmt.Sprintf("%s-%d", *identity, campaign)
		ctx, cancel := context.WithCancel(context.Background())
		config := leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
				Client:     client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: who},
			},
			LeaseDuration:   *lease,
			RenewDeadline:   *deadline,
			RetryPeriod:     *retry,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					// Cancelled only after the last line is written: that is what releasing asks of its users.
					defer cancel()
					work(ctx, who, *leads)
				},
				OnStoppedLeading: func() {},
			},
		}
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			fail(err)
		}
		elector.Run(ctx)
		cancel()
		time.Sleep(*rests)
	}
}

func work(ctx context.Context, who string, duration time.Duration) {
	end := time.After(duration)
	for {
		fmt.Printf("%s %d\n", who, time.Now().UnixNano())
		select {
		case <-end:
			return
		case <-ctx.Done():
			return
		case <-time.After(tick):
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "contender:", err)
	os.Exit(1)
}
