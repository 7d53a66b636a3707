package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
)

// command answers one line of standard input; args are the words after its name.
type command func(ctx context.Context, args []string) error

// serveCommands answers lines until the context ends or one of them is "quit". The
// end of the input ends nothing: a subject may be started without a stdin.
func (s *subject) serveCommands(ctx context.Context, input io.Reader, commands map[string]command) error {
	lines := make(chan string)
	// A read of stdin cannot be interrupted, so this goroutine lives until the next
	// line or the end of the process.
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(input); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()

	log := ctrl.LoggerFrom(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, open := <-lines:
			if !open {
				return nil
			}
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if words[0] == "quit" {
				s.stop()
				return nil
			}
			answer, known := commands[words[0]]
			if !known {
				log.Info("Ignoring an unknown command", "command", line)
				continue
			}
			if err := answer(ctx, words[1:]); err != nil && ctx.Err() == nil {
				return fmt.Errorf("command %q: %w", line, err)
			}
		}
	}
}

// countArgument reads the one argument of commands such as "flood 1000".
func countArgument(args []string) (int, error) {
	if len(args) != 1 {
		return 0, fmt.Errorf("want one number, got %d words", len(args))
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 {
		return 0, fmt.Errorf("want a number, got %q", args[0])
	}
	return n, nil
}
