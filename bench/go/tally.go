package main

import (
	"sync"
	"sync/atomic"

	ctrl "sigs.k8s.io/controller-runtime"
)

// tally counts reconciles. Its cost is paid inside the measured path, so it is
// atomics, except for the set that proves that every key was seen.
type tally struct {
	enqueued, begun, finished, mismatches atomic.Int64

	mu   sync.Mutex
	seen map[ctrl.Request]struct{}
}

// reset starts over; nothing may be in flight. It keeps the memory of the set.
func (t *tally) reset() {
	t.enqueued.Store(0)
	t.begun.Store(0)
	t.finished.Store(0)
	t.mismatches.Store(0)

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[ctrl.Request]struct{}{}
	}
	clear(t.seen)
}

func (t *tally) begin(req ctrl.Request) {
	t.begun.Add(1)
	t.mu.Lock()
	t.seen[req] = struct{}{}
	t.mu.Unlock()
}

func (t *tally) end() { t.finished.Add(1) }

// distinct is how many different keys have been reconciled.
func (t *tally) distinct() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.seen)
}
