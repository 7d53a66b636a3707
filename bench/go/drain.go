package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// drainPoll is the polling interval of drained, which begins when everything was sent.
const drainPoll = 250 * time.Microsecond

// moment is a point in time on both clocks of a measurement.
type moment struct {
	wall time.Time
	cpu  time.Duration
}

func now() (moment, error) {
	cpu, err := cpuTime()
	return moment{wall: time.Now(), cpu: cpu}, err
}

// drained waits until sent reports that all keys are in the queue, the queue is empty
// and no reconcile runs, and returns that time.
func (n *noop) drained(ctx context.Context, queue requestQueue, sent func() bool) (moment, error) {
	for {
		if sent() && queue.Len() == 0 && n.tally.begun.Load() == n.tally.finished.Load() {
			// A request that a worker took but has not begun is in none of these
			// counts. The queue's own metrics have it, but cost too much to be asked
			// each time, or within the time that is measured.
			at, err := now()
			if err != nil {
				return at, err
			}
			idle, err := queueIdle()
			if idle || err != nil {
				return at, err
			}
		}
		select {
		case <-time.After(drainPoll):
		case <-ctx.Done():
			return moment{}, ctx.Err()
		}
	}
}

// queueIdle reports whether every request the queue handed out has come back. The queue
// observes a wait when it hands one out, and a duration when it is done.
func queueIdle() (bool, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return false, fmt.Errorf("gather metrics: %w", err)
	}
	var taken, done uint64
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "workqueue_queue_duration_seconds":
				taken += metric.GetHistogram().GetSampleCount()
			case "workqueue_work_duration_seconds":
				done += metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return taken == done, nil
}
