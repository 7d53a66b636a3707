package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// reporter writes the program's answers, one JSON object a line.
type reporter struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newReporter(w io.Writer) *reporter {
	return &reporter{enc: json.NewEncoder(w)}
}

// emit writes one answer. The encoder hands the whole line to a single Write, so a
// reader never sees half of one. When nobody reads any more there is nobody left to
// work for either, and the program ends.
func (r *reporter) emit(event any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.enc.Encode(event); err != nil {
		fmt.Fprintln(os.Stderr, "bench-go: cannot report:", err)
		os.Exit(1)
	}
}

// plainEvent is an answer that says all by its name.
type plainEvent struct {
	Event string `json:"event"`
}
