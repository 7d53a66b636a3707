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

// userServer serves the users of a control plane on a unix socket: one
// connection per user, one JSON object per line in both directions. A user that
// sends `attach` counts until its connection closes, whether it ended cleanly or
// not. The objects that it registered with `discard` are then deleted, so that a
// killed test leaves no namespace behind.
type userServer struct {
	plane    *plane
	linger   time.Duration
	idle     chan struct{}
	shutdown chan struct{}

	mu       sync.Mutex
	users    map[*user]bool
	log      []string // progress so far, sent to users that attach later
	isReady  bool
	keep     bool
	timer    *time.Timer
	began    time.Time
	finished bool
}

type user struct {
	conn  net.Conn
	mu    sync.Mutex // guards waste and writes to conn
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

func newUserServer(p *plane, linger time.Duration) *userServer {
	s := &userServer{
		plane: p, linger: linger, began: time.Now(), users: map[*user]bool{},
		idle: make(chan struct{}), shutdown: make(chan struct{}, 1),
	}
	p.report = s.progress
	// A starter that died before it attached must not leave this process behind.
	s.timer = time.AfterFunc(max(linger, 30*time.Second), s.leave)
	return s
}

func (s *userServer) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) == 0 && !s.keep && !s.finished {
		s.finished = true
		close(s.idle)
	}
}

func (s *userServer) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go s.handle(&user{conn: conn})
	}
}

func (s *userServer) handle(u *user) {
	defer s.depart(u)
	lines := bufio.NewScanner(u.conn)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			u.send(reply{Error: "not a request: " + err.Error()})
			continue
		}
		s.answer(u, r)
	}
}

func (s *userServer) answer(u *user, r request) {
	s.mu.Lock()
	isReady := s.isReady
	s.mu.Unlock()
	if needsReady := r.Op == "component" || r.Op == "discard"; needsReady && !isReady {
		u.send(reply{Error: "the control plane is still starting"})
		return
	}
	switch r.Op {
	case "attach":
		s.attach(u)
	case "status":
		u.send(s.status())
	case "component":
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
		defer cancel()
		u.send(outcome(s.plane.act(ctx, r.Component, r.Action)))
	case "discard":
		// Deleted when the user disconnects or sends `release`, which has no reply.
		u.mu.Lock()
		u.waste = append(u.waste, r.Path)
		u.mu.Unlock()
		u.send(reply{})
	case "release":
		u.mu.Lock()
		u.waste = without(u.waste, r.Path)
		u.mu.Unlock()
		go s.plane.api.discard(r.Path)
	case "keep":
		s.mu.Lock()
		s.keep = true
		s.mu.Unlock()
		u.send(reply{})
	case "shutdown":
		select {
		case s.shutdown <- struct{}{}:
		default:
		}
		// The reply is the end of the connection, when everything has stopped.
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

func (s *userServer) attach(u *user) {
	s.mu.Lock()
	s.users[u] = true
	s.timer.Stop()
	log, isReady := append([]string(nil), s.log...), s.isReady
	s.mu.Unlock()
	for _, line := range log {
		u.send(reply{Progress: line})
	}
	if isReady {
		u.send(s.status())
	}
}

func (s *userServer) status() reply {
	s.plane.mu.Lock()
	facts := s.plane.facts
	s.plane.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return reply{
		Facts: &facts, Users: len(s.users), Keep: s.keep, Ready: s.isReady,
		Seconds: int(time.Since(s.began).Seconds()), Pids: s.plane.pids(),
	}
}

func (s *userServer) progress(line string) {
	line = fmt.Sprintf("%s (%.1f s)", line, time.Since(s.began).Seconds())
	s.mu.Lock()
	s.log = append(s.log, line)
	s.mu.Unlock()
	s.broadcast(reply{Progress: line})
}

func (s *userServer) ready() {
	s.mu.Lock()
	s.isReady = true
	s.mu.Unlock()
	s.broadcast(s.status())
}

func (s *userServer) broadcast(r reply) {
	s.mu.Lock()
	var all []*user
	for u := range s.users {
		all = append(all, u)
	}
	s.mu.Unlock()
	for _, u := range all {
		u.send(r)
	}
}

// depart removes a user whose connection has ended, and deletes what it registered
// with `discard`.
func (s *userServer) depart(u *user) {
	u.conn.Close()
	s.mu.Lock()
	delete(s.users, u)
	if len(s.users) == 0 && !s.keep {
		s.timer.Reset(s.linger)
	}
	stopping := s.finished
	s.mu.Unlock()
	for _, path := range u.waste {
		if !stopping {
			s.plane.api.discard(path)
		}
	}
}

// finish tells the remaining users why the control plane ends, and disconnects them.
func (s *userServer) finish(failure error) {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	if failure != nil {
		s.broadcast(reply{Lost: strings.TrimSpace(failure.Error())})
	} else {
		s.broadcast(reply{Lost: "it was stopped", Stopped: true})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for u := range s.users {
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
