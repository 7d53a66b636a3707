package main

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// Queue mode: the three benchmarks controller-runtime has for its own priority queue
// (pkg/controller/priorityqueue/priorityqueue_test.go), run by the same harness of
// package testing. One op is a thousand keys, as there.

const (
	queueBatch = 1000

	contendedKeys    = 1_000_000
	contendedWorkers = 1000
	contendedTime    = time.Millisecond
)

type queueResult struct {
	Event   string `json:"event"`
	Case    string `json:"case"`
	NsPerOp int64  `json:"ns_per_op"`
	Ops     int    `json:"ops"`
}

func runQueue(_ context.Context, s *subject) error {
	cases := []struct {
		name string
		run  func(*testing.B)
	}{
		{"AddGetDone", benchmarkAddGetDone},
		{"AddOnly", benchmarkAddOnly},
		{"AddLockContended", benchmarkAddLockContended},
	}
	for _, c := range cases {
		result := testing.Benchmark(c.run)
		s.out.emit(queueResult{
			Event:   "queue",
			Case:    c.name,
			NsPerOp: result.NsPerOp(),
			Ops:     result.N,
		})
	}
	return nil
}

// benchmarkAddGetDone takes a batch through the whole life of a key.
func benchmarkAddGetDone(b *testing.B) {
	queue := priorityqueue.New[int]("")
	defer queue.ShutDown()

	for b.Loop() {
		addBatch(queue)
		for range queueBatch {
			key, _ := queue.Get()
			queue.Done(key)
		}
	}
}

// benchmarkAddOnly adds the same batch again and again; nobody takes it.
func benchmarkAddOnly(b *testing.B) {
	queue := priorityqueue.New[int]("")
	defer queue.ShutDown()

	for b.Loop() {
		addBatch(queue)
	}
}

// benchmarkAddLockContended adds while a thousand workers pull at a long queue.
func benchmarkAddLockContended(b *testing.B) {
	queue := priorityqueue.New[int]("")
	defer queue.ShutDown()

	for key := range contendedKeys {
		queue.Add(key)
	}
	for range contendedWorkers {
		go func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					// The original's workers spin on; here other work may follow.
					return
				}
				time.Sleep(contendedTime)
				queue.Done(key)
			}
		}()
	}

	for b.Loop() {
		addBatch(queue)
	}
}

func addBatch(queue priorityqueue.PriorityQueue[int]) {
	for key := range queueBatch {
		queue.Add(key)
	}
}
