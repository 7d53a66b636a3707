package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// freezePatience is how long the threads of a process may take to stop after
// SIGSTOP. It is a bound against a hang; usually a millisecond is enough.
const freezePatience = 10 * time.Second

// waitFrozen waits until every thread of a process that got SIGSTOP has stopped.
// The signal only asks for the stop: on a busy machine a thread that is running
// goes on for some milliseconds, in which a server can still answer a request.
func waitFrozen(name string, pid int) error {
	deadline := time.Now().Add(freezePatience)
	for {
		frozen, err := allThreadsStopped(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		if err != nil {
			return fmt.Errorf("cannot read the threads of %s: %w", name, err)
		}
		if frozen {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still runs %s after SIGSTOP", name, freezePatience)
		}
		time.Sleep(time.Millisecond)
	}
}

// allThreadsStopped reads the state of each thread below a process's task directory.
func allThreadsStopped(tasks string) (bool, error) {
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "stat"))
		if os.IsNotExist(err) {
			continue // this thread has ended since the directory was read
		}
		if err != nil {
			return false, err
		}
		if !stopped(stat) {
			return false, nil
		}
	}
	return true, nil
}

// stopped reads the state from a line of stat. The name of the program comes
// before it, in parentheses, and may itself contain spaces and parentheses.
func stopped(stat []byte) bool {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 || end+2 >= len(stat) {
		return false
	}
	switch stat[end+2] {
	case 'T', 't', 'Z', 'X':
		return true
	default:
		return false
	}
}
