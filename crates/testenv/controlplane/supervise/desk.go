package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// desk is where users come: one connection each on the unix socket, one JSON
// object a line in both directions. A user that sends `attach` counts until its
// connection closes, however it ends. What it told us to clean up is then
// deleted, so that a killed test leaves no namespace behind.
type desk struct {
	plane    *plane
	linger   time.Duration
	idle     chan struct{}
	shutdown chan struct{}

	mu       sync.Mutex
	users    map[*user]bool
	log      []string // progress so far, for those who come late
	isReady  bool
	keep     bool
	timer    *time.Timer
	began    time.Time
	finished bool
}

type user struct {
	conn  net.Conn
	mu    sync.Mutex // one writer at a time
	waste []string
}

type request struct {
	Op        string `json:"op"`
	Component string `json:"component,omitempty"`
	Action    string `json:"action,omitempty"`
	Path      string `json:"path,omitempty"`
}

type reply struct {
	Error    string         `json:"error,omitempty"`
	Progress string         `json:"progress,omitempty"`
	Lost     string         `json:"lost,omitempty"`
	Stopped  bool           `json:"stopped,omitempty"`
	Facts    *Facts         `json:"facts,omitempty"`
	Users    int            `json:"users"`
	Keep     bool           `json:"keep"`
	Ready    bool           `json:"ready"`
	Seconds  int            `json:"seconds"`
	Pids     map[string]int `json:"pids,omitempty"`
}

func newDesk(p *plane, linger time.Duration) *desk {
	d := &desk{
		plane: p, linger: linger, began: time.Now(), users: map[*user]bool{},
		idle: make(chan struct{}), shutdown: make(chan struct{}, 1),
	}
	p.report = d.progress
	// Whoever started us and died before attaching must not leave us behind.
	d.timer = time.AfterFunc(max(linger, 30*time.Second), d.leave)
	return d
}

func (d *desk) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.users) == 0 && !d.keep && !d.finished {
		d.finished = true
		close(d.idle)
	}
}

func (d *desk) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go d.handle(&user{conn: conn})
	}
}

func (d *desk) handle(u *user) {
	defer d.depart(u)
	lines := bufio.NewScanner(u.conn)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			u.send(reply{Error: "not a request: " + err.Error()})
			continue
		}
		d.answer(u, r)
	}
}

func (d *desk) answer(u *user, r request) {
	d.mu.Lock()
	isReady := d.isReady
	d.mu.Unlock()
	if needsReady := r.Op == "component" || r.Op == "discard"; needsReady && !isReady {
		u.send(reply{Error: "the control plane is still starting"})
		return
	}
	switch r.Op {
	case "attach":
		d.attach(u)
	case "status":
		u.send(d.status())
	case "component":
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
		defer cancel()
		u.send(outcome(d.plane.act(ctx, r.Component, r.Action)))
	case "discard":
		// Deleted when the user goes, or when it says `release`, which has no answer.
		u.mu.Lock()
		u.waste = append(u.waste, r.Path)
		u.mu.Unlock()
		u.send(reply{})
	case "release":
		u.mu.Lock()
		u.waste = without(u.waste, r.Path)
		u.mu.Unlock()
		go d.plane.api.discard(r.Path)
	case "keep":
		d.mu.Lock()
		d.keep = true
		d.mu.Unlock()
		u.send(reply{})
	case "shutdown":
		select {
		case d.shutdown <- struct{}{}:
		default:
		}
		// Answered by the connection's end, when everything has stopped.
	default:
		u.send(reply{Error: fmt.Sprintf("there is no request %q", r.Op)})
	}
}

func outcome(err error) reply {
	if err != nil {
		return reply{Error: err.Error()}
	}
	return reply{}
}

func without(all []string, one string) []string {
	kept := all[:0]
	for _, each := range all {
		if each != one {
			kept = append(kept, each)
		}
	}
	return kept
}

func (d *desk) attach(u *user) {
	d.mu.Lock()
	d.users[u] = true
	d.timer.Stop()
	log, isReady := append([]string(nil), d.log...), d.isReady
	d.mu.Unlock()
	for _, line := range log {
		u.send(reply{Progress: line})
	}
	if isReady {
		u.send(d.status())
	}
}

func (d *desk) status() reply {
	d.plane.mu.Lock()
	facts := d.plane.facts
	d.plane.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return reply{
		Facts: &facts, Users: len(d.users), Keep: d.keep, Ready: d.isReady,
		Seconds: int(time.Since(d.began).Seconds()), Pids: d.plane.pids(),
	}
}

func (d *desk) progress(line string) {
	line = fmt.Sprintf("%s (%.1f s)", line, time.Since(d.began).Seconds())
	d.mu.Lock()
	d.log = append(d.log, line)
	d.mu.Unlock()
	d.broadcast(reply{Progress: line})
}

func (d *desk) ready() {
	d.mu.Lock()
	d.isReady = true
	d.mu.Unlock()
	d.broadcast(d.status())
}

func (d *desk) broadcast(r reply) {
	d.mu.Lock()
	var all []*user
	for u := range d.users {
		all = append(all, u)
	}
	d.mu.Unlock()
	for _, u := range all {
		u.send(r)
	}
}

// depart is a user's end, clean or not.
func (d *desk) depart(u *user) {
	u.conn.Close()
	d.mu.Lock()
	delete(d.users, u)
	if len(d.users) == 0 && !d.keep {
		d.timer.Reset(d.linger)
	}
	stopping := d.finished
	d.mu.Unlock()
	for _, path := range u.waste {
		if !stopping {
			d.plane.api.discard(path)
		}
	}
}

// finish tells whoever is still here why it ends.
func (d *desk) finish(failure error) {
	d.mu.Lock()
	d.finished = true
	d.mu.Unlock()
	if failure != nil {
		d.broadcast(reply{Lost: strings.TrimSpace(failure.Error())})
	} else {
		d.broadcast(reply{Lost: "it was stopped", Stopped: true})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for u := range d.users {
		u.conn.Close()
	}
}

func (u *user) send(r reply) {
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// A user that does not read must not hold up the others.
	u.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	u.conn.Write(append(line, '\n'))
}
