package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// plane is the control plane: its components, their ports and their files.
type plane struct {
	Options
	spawn  chan spawnJob
	deaths chan error
	report func(string) // progress, one line a step

	mu         sync.Mutex
	components map[string]*component
	stopping   bool
	facts      Facts
	api        *apiClient
}

// Facts are the addresses and paths that users of the control plane need.
type Facts struct {
	Name       string `json:"name"`
	Dir        string `json:"dir"`
	Server     string `json:"server"`
	Etcd       string `json:"etcd"`
	Kubeconfig string `json:"kubeconfig"`
	PKI        string `json:"pki"`
	AuditLog   string `json:"auditLog"`
	Bin        string `json:"bin"`
	Version    string `json:"version"`
	Pid        int    `json:"pid"`
}

// component is one child process. It may be stopped and started again.
type component struct {
	name    string
	args    []string
	process *os.Process
	exited  chan struct{} // closed when the present process has ended
	wanted  bool          // false: it was stopped on request
	paused  bool
}

type spawnJob struct {
	command *exec.Cmd
	done    chan error
}

func newPlane(o Options) *plane {
	return &plane{
		Options:    o,
		spawn:      make(chan spawnJob),
		deaths:     make(chan error, 1),
		report:     func(string) {},
		components: map[string]*component{},
	}
}

func (p *plane) path(parts ...string) string {
	return filepath.Join(append([]string{p.Dir}, parts...)...)
}

// start runs a component and watches over it.
func (p *plane) start(name string, args ...string) error {
	p.mu.Lock()
	c, known := p.components[name]
	if !known {
		c = &component{name: name, args: args}
		p.components[name] = c
	}
	p.mu.Unlock()

	if err := os.MkdirAll(p.path("log"), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(p.logPath(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(filepath.Join(p.Bin, name), c.args...)
	command.Dir = p.Dir
	command.Stdout, command.Stderr = log, log
	command.Env = environment()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	job := spawnJob{command, make(chan error, 1)}
	p.spawn <- job
	if err := <-job.done; err != nil {
		return fmt.Errorf("cannot start %s: %w", name, err)
	}
	exited := make(chan struct{})
	p.mu.Lock()
	c.process, c.exited, c.wanted, c.paused = command.Process, exited, true, false
	p.mu.Unlock()
	go func() {
		err := command.Wait()
		close(exited)
		p.mu.Lock()
		unexpected := c.exited == exited && c.wanted && !p.stopping
		p.mu.Unlock()
		if unexpected {
			select {
			case p.deaths <- fmt.Errorf("%s ended unexpectedly (%v); the end of %s:\n%s", name, err, p.logPath(name), tail(p.logPath(name), 12)):
			default:
			}
		}
	}()
	return nil
}

func (p *plane) logPath(name string) string { return p.path("log", name+".log") }

// environment keeps proxies and other people's kubeconfigs away from the
// components: everything they talk to is on this machine.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "TMPDIR=" + os.TempDir()}
}

// stop ends a component on request and waits until it is gone.
func (p *plane) stop(name string) error {
	c, err := p.find(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	c.wanted = false
	process, exited := c.process, c.exited
	p.mu.Unlock()
	// Nothing here is worth a drain, which would take seconds with open watches.
	process.Signal(syscall.SIGKILL)
	<-exited
	return nil
}

// pause freezes or continues a component. A frozen component does nothing any
// more when this returns.
func (p *plane) pause(name string, pause bool) error {
	c, err := p.find(name)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	signal := syscall.SIGCONT
	if pause {
		signal = syscall.SIGSTOP
	}
	if err := c.process.Signal(signal); err != nil {
		return fmt.Errorf("cannot signal %s: %w", name, err)
	}
	c.paused = pause
	if pause {
		return waitFrozen(name, c.process.Pid)
	}
	return nil
}

func (p *plane) find(name string) (*component, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.components[name]
	if !ok {
		return nil, fmt.Errorf("there is no component %q; there are etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok", name)
	}
	return c, nil
}

// act carries out an action of a user on one component.
func (p *plane) act(ctx context.Context, name, action string) error {
	switch action {
	case "stop":
		return p.stop(name)
	case "start", "restart":
		if action == "restart" {
			if err := p.stop(name); err != nil {
				return err
			}
		}
		c, err := p.find(name)
		if err != nil {
			return err
		}
		if p.alive(c) {
			return nil
		}
		if err := p.start(name, c.args...); err != nil {
			return err
		}
		if name == "kube-apiserver" || name == "etcd" {
			return p.api.waitReady(ctx)
		}
		return nil
	case "pause", "continue":
		return p.pause(name, action == "pause")
	default:
		return fmt.Errorf("there is no action %q; there are stop, start, restart, pause and continue", action)
	}
}

func (p *plane) alive(c *component) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

func (p *plane) killAll() {
	p.mu.Lock()
	p.stopping = true
	var waits []chan struct{}
	for _, c := range p.components {
		if c.process != nil {
			c.process.Signal(syscall.SIGKILL)
			waits = append(waits, c.exited)
		}
	}
	p.mu.Unlock()
	deadline := time.After(10 * time.Second)
	for _, exited := range waits {
		select {
		case <-exited:
		case <-deadline:
			return
		}
	}
}

// pids returns the process ids of the components, for `status`.
func (p *plane) pids() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	pids := map[string]int{}
	for name, c := range p.components {
		if c.process == nil {
			continue
		}
		select {
		case <-c.exited:
		default:
			pids[name] = c.process.Pid
		}
	}
	return pids
}
