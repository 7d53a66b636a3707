// Package supervise owns the processes of one local control plane.
//
// It exists because only a parent that stays alive on one locked OS thread can
// have its children killed by the kernel when it dies (Pdeathsig), which a Rust
// test process, with a thread per test, cannot be. It counts its users by open
// connections on a unix socket, lingers after the last one, then stops every
// component and removes the directory it was given.
//
// Only the standard library is used here, so that the supervisor alone builds in
// seconds where ready-made Kubernetes binaries are at hand.
package supervise

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Options choose the components, the directory, and the time to stay without users.
type Options struct {
	Name   string        // the instance: "shared", "up" or "private"
	Dir    string        // holds everything of this instance; removed at the end
	Bin    string        // the directory with the components' binaries
	Port   int           // the API server's port; 0 picks a free one
	Nodes  int           // number of KWOK nodes
	Linger time.Duration // time to stay after the last user
	Exec   bool          // exec into a pod runs the command on this machine
}

// Main is the entry point of the `supervise` mode. It returns the exit code.
func Main(args []string) int {
	runtime.LockOSThread() // Pdeathsig follows the thread that starts the children: this one, for good
	options, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "supervise:", err)
		return 2
	}
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, "supervise:", err)
		return 1
	}
	return 0
}

func parse(args []string) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("supervise", flag.ContinueOnError)
	flags.StringVar(&o.Name, "name", "private", "name of the instance")
	flags.StringVar(&o.Dir, "dir", "", "directory of the instance; created, and removed at the end")
	flags.StringVar(&o.Bin, "bin", "", "directory of the components' binaries; default: that of this program")
	flags.IntVar(&o.Port, "port", 0, "port of the API server; 0 picks a free one")
	flags.IntVar(&o.Nodes, "nodes", 3, "number of nodes that KWOK keeps")
	flags.DurationVar(&o.Linger, "linger", 60*time.Second, "how long to stay after the last user has gone")
	flags.BoolVar(&o.Exec, "exec", false, "exec into a pod runs the command on this machine, with the rights of this process")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.Dir == "" {
		return o, errors.New("--dir is required")
	}
	if o.Bin == "" {
		self, err := os.Executable()
		if err != nil {
			return o, err
		}
		o.Bin = filepath.Dir(self)
	}
	return o, nil
}

func run(o Options) error {
	signal.Ignore(syscall.SIGHUP) // the terminal that started us may go away
	if err := claim(o.Dir); err != nil {
		return err
	}
	lock, err := takeLock(lockPath(o.Dir))
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another supervisor already runs in %s", o.Dir)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	sweep(filepath.Dir(o.Dir))
	if err := clear(o.Dir); err != nil {
		return err
	}

	socket := filepath.Join(o.Dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", socket, err)
	}
	defer listener.Close()

	plane := newPlane(o)
	users := newUserServer(plane, o.Linger)
	go users.serve(listener)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- plane.bringUp(ctx) }()

	// Every child is started by this loop, on this thread.
	var failure error
	for running := true; running; {
		select {
		case job := <-plane.spawn:
			job.done <- job.command.Start()
		case err := <-started:
			if err != nil {
				failure = err
				running = false
				break
			}
			users.ready()
		case death := <-plane.deaths:
			failure = death
			running = false
		case <-users.idle:
			running = false
		case <-users.shutdown:
			running = false
		case <-stop:
			running = false
		}
	}
	cancel()
	plane.killAll()
	listener.Close()
	users.finish(failure)
	if failure != nil {
		// The logs explain the failure: they are kept until the next start.
		fmt.Fprintln(os.Stderr, failure)
		os.Remove(socket)
		return failure
	}
	if strings.HasPrefix(filepath.Base(o.Dir), "private-") {
		os.Remove(lockPath(o.Dir))
	}
	return removeDirectory(o.Dir)
}

// lockSuffix is used by supervisors only: a directory whose lock is free is deleted.
const lockSuffix = ".windlass-testenv.lock"

// lockPath is beside the directory, not in it: a lock file that is removed and
// created again can be held twice. Names are few and are used again, except for private ones.
func lockPath(dir string) string { return dir + lockSuffix }

// takeLock locks path for as long as this process lives; the kernel releases the
// lock with the process, so a killed supervisor leaves no stale lock.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// sweep removes the directories of instances whose supervisor was killed.
func sweep(base string) {
	locks, err := filepath.Glob(filepath.Join(base, "*"+lockSuffix))
	if err != nil {
		return
	}
	for _, path := range locks {
		lock, err := takeLock(path)
		if err != nil {
			continue // alive
		}
		dir := strings.TrimSuffix(path, lockSuffix)
		if isOurs(dir) {
			removeDirectory(dir)
		}
		if strings.HasPrefix(filepath.Base(dir), "private-") {
			os.Remove(path)
		}
		lock.Close()
	}
}

// clear empties dir of what an earlier instance left, except for the marker and the log
// that our own output goes to.
func clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == "supervisor.log" || entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// tail is the end of a log file, for error messages.
func tail(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	const window = 16 << 10
	if info, err := file.Stat(); err == nil && info.Size() > window {
		file.Seek(-window, io.SeekEnd)
	}
	text, _ := io.ReadAll(file)
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
