package launcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// dialect is how a PMI-1 launcher words its answers.
type dialect struct {
	init, maxes, name, put, barrier, get, missing, finalize string
}

// As captured from mpiexec of MPICH 4.0.2 and from Slurm 22.05.8's pmi2 plugin.
var dialects = map[string]dialect{
	"Hydra": {
		init:     "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
		maxes:    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
		name:     "cmd=my_kvsname kvsname=kvs_21471_0_283587111_vm",
		put:      "cmd=put_result rc=0 msg=success",
		barrier:  "cmd=barrier_out",
		get:      "cmd=get_result rc=0 msg=success value=%s",
		missing:  "cmd=get_result rc=-1 msg=key_%s_not_found value=unknown",
		finalize: "cmd=finalize_ack",
	},
	"Slurm": {
		init:     "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
		maxes:    "cmd=maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=1024",
		name:     "cmd=my_kvsname rc=0 kvsname=6.0",
		put:      "cmd=put_result rc=0",
		barrier:  "cmd=barrier_out rc=0",
		get:      "cmd=get_result rc=0 value=%s",
		missing:  "cmd=get_result rc=-1 msg=key_%s_not_found",
		finalize: "cmd=finalize_ack rc=0",
	},
}

// pmiServer plays a launcher of size ranks.
type pmiServer struct {
	dialect
	fence
	bytes bool // answers come byte by byte

	values map[string]string
	left   int
	over   chan struct{} // closed with the test
}

// serve answers one rank until it leaves.
func (s *pmiServer) serve(c net.Conn, rank int) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		a, _ := parseAnswer(lines.Text())
		key := a.words["key"]
		switch a.words["cmd"] {
		case "initack":
			s.say(c, "cmd=initack", fmt.Sprintf("cmd=set size=%d", s.size), fmt.Sprintf("cmd=set rank=%d", rank), "cmd=set debug=0")
		case "init":
			s.say(c, s.init)
		case "get_maxes":
			s.say(c, s.maxes)
		case "get_my_kvsname":
			s.say(c, s.name)
		case "put":
			s.mu.Lock()
			s.values[key] = a.words["value"]
			s.mu.Unlock()
			s.say(c, s.put)
		case "barrier_in":
			select {
			case <-s.enter():
			case <-s.over:
				return
			}
			s.say(c, s.barrier)
		case "get":
			s.mu.Lock()
			value, ok := s.values[key]
			s.mu.Unlock()
			if !ok {
				s.say(c, fmt.Sprintf(s.missing, key))
				break
			}
			s.say(c, fmt.Sprintf(s.get, value))
		case "finalize":
			s.mu.Lock()
			s.left++
			s.mu.Unlock()
			s.say(c, s.finalize)
			return
		}
	}
}

func (s *pmiServer) say(c net.Conn, lines ...string) {
	text := strings.Join(lines, "\n") + "\n"
	if !s.bytes {
		io.WriteString(c, text)
		return
	}
	for i := range len(text) {
		io.WriteString(c, text[i:i+1])
	}
}

// start returns a session with the server for each rank. byPort: ranks ask for their
// place.
func (s *pmiServer) start(t *testing.T, byPort bool) []*session {
	s.values, s.over = map[string]string{}, make(chan struct{})
	t.Cleanup(func() { close(s.over) })
	all := make([]*session, s.size)
	for r := range all {
		mine, its := net.Pipe()
		go s.serve(its, r)
		all[r] = &session{
			label: "PMI",
			dial:  func(context.Context) (net.Conn, error) { return mine, nil },
			speak: func(c net.Conn) manager {
				if byPort {
					return newPMI1(c, fmt.Sprint(r), 0, 0)
				}
				return newPMI1(c, "", levels.Rank(r), s.size)
			},
		}
		t.Cleanup(func() { mine.Close() })
	}
	return all
}

// onAll runs do for all ranks at once.
func onAll(t *testing.T, all []*session, do func(r int, s *session) error) {
	t.Helper()
	var running sync.WaitGroup
	for r, s := range all {
		running.Go(func() {
			if err := do(r, s); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	running.Wait()
}

func shareText(ctx context.Context, r int, s *session, text string) error {
	mine := ""
	if r == 0 {
		mine = text
	}
	got, err := s.share(ctx, mine)
	if err == nil && got != text {
		err = fmt.Errorf("got %q, want %q", got, text)
	}
	return err
}

func TestPMI(t *testing.T) {
	for name, d := range dialects {
		for _, bytewise := range []bool{false, true} {
			for _, byPort := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s bytewise=%v port=%v", name, bytewise, byPort), func(t *testing.T) {
					s := &pmiServer{dialect: d, fence: fence{size: 4}, bytes: bytewise}
					all := s.start(t, byPort)
					for i := range 2 { // a process may join again while it hasn't left
						onAll(t, all, func(r int, s *session) error { return shareText(t.Context(), r, s, fmt.Sprintf("tfi1.abc-_%d", i)) })
					}
					onAll(t, all, func(_ int, s *session) error { return s.leave(t.Context()) })
					onAll(t, all, func(_ int, s *session) error { return s.leave(t.Context()) }) // once is enough
					if s.left != 4 {
						t.Errorf("%d ranks have left", s.left)
					}
					if _, err := all[1].share(t.Context(), ""); !errors.Is(err, errHasLeft) {
						t.Errorf("after leaving: %v", err)
					}
				})
			}
		}
	}
}

func TestPMIBarrierNamesTheWait(t *testing.T) {
	s := &pmiServer{dialect: dialects["Hydra"], fence: fence{size: 4}}
	all := s.start(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	onAll(t, all[:3], func(r int, s *session) error {
		err := shareText(ctx, r, s, "text")
		want := "PMI: barrier: not all 4 ranks came in 0.3 s (the launcher does not say which): context deadline exceeded"
		if fmt.Sprint(err) != want || !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("got %v\nwant %s", err, want)
		}
		if _, err := s.share(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "has failed before") {
			return fmt.Errorf("again: %w", err)
		}
		return s.leave(t.Context()) // of a job that failed nothing is told
	})
}

// Nothing has been said to a manager that wasn't reached: the next try dials again.
func TestFailedDialIsTriedAgain(t *testing.T) {
	dials := 0
	s := &session{label: "PMI", dial: func(context.Context) (net.Conn, error) {
		dials++
		return nil, errors.New("nobody listens")
	}}
	for try := 1; try <= 2; try++ {
		if _, err := s.share(t.Context(), ""); fmt.Sprint(err) != "PMI: nobody listens" || dials != try {
			t.Errorf("try %d: %v after %d dials", try, err, dials)
		}
	}
}

func TestPMICancelled(t *testing.T) {
	s := &pmiServer{dialect: dialects["Slurm"], fence: fence{size: 2}}
	all := s.start(t, false)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	time.AfterFunc(30*time.Millisecond, func() { cancel(why) })
	if _, err := all[1].share(ctx, ""); !errors.Is(err, why) || !strings.HasPrefix(err.Error(), "PMI: enough") {
		t.Error(err)
	}
}

func TestShareRefusesText(t *testing.T) {
	s := &session{label: "PMI"}
	for _, text := range []string{"a b", "a\nb", strings.Repeat("x", MaxText+1)} {
		if _, err := s.share(t.Context(), text); err == nil {
			t.Errorf("%.10q was taken", text)
		}
	}
}

// heard is a launcher that has said everything before it is asked.
type heard struct {
	io.Reader
	io.Writer
}

const goodPMI = "cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\ncmd=my_kvsname kvsname=k\ncmd=barrier_out\ncmd=get_result rc=0 value=v\n"

func hearPMI(text, id string, rank levels.Rank) (string, error) {
	p := newPMI1(heard{strings.NewReader(text), io.Discard}, id, rank, 4)
	if err := p.greet(); err != nil {
		return "", err
	}
	return p.spread("tierflow-0", "text")
}

// TestPMIHostile: what a launcher shouldn't say is an error that shows it.
func TestPMIHostile(t *testing.T) {
	if got, err := hearPMI(goodPMI, "", 1); got != "v" {
		t.Fatalf("%q, %v", got, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"rc=0", "rc=-1", `init: answer "cmd=response_to_init rc=-1": the launcher refuses`},
		{"vallen_max=1024", "vallen_max=0", "want vallen_max of 1 to"},
		{"vallen_max=1024", "", "want vallen_max"},
		{"kvsname=k", "kvsname=", "no kvsname"},
		{"cmd=barrier_out", "cmd=abort", "want cmd=barrier_out"},
		{"cmd=barrier_out", "barrier_out", "no cmd="},
		{"cmd=barrier_out", "cmd=barrier_out cmd=x", "twice"},
		{"value=v", "", "no value"},
		{"value=v\n", "value=tfi1.secret", `the launcher cut its answer short: "cmd=get_result rc=0 value=…"`},
		{"rc=0 value=v", "rc=1 value=tfi1.secret", `"cmd=get_result rc=1 value=…": the launcher refuses`},
		{"cmd=get_result rc=0 value=v\n", "", "get: the launcher ended the conversation"},
		{"cmd=maxes", "cmd=" + strings.Repeat("x", pmiLine), "more than 16384 bytes"},
	} {
		text := strings.Replace(goodPMI, c.old, c.new, 1)
		if strings.HasPrefix(c.old, "rc=0 value") {
			text = strings.Replace(goodPMI, c.old, c.new, -1)
		}
		if got, err := hearPMI(text, "", 1); err == nil || !strings.Contains(fmt.Sprint(got, err), c.want) {
			t.Errorf("%q for %q: %q, %.300v", c.new, c.old, got, err)
		}
	}
	for i := range len(goodPMI) { // cut anywhere
		if got, err := hearPMI(goodPMI[:i], "", 1); err == nil {
			t.Errorf("cut at %d: %q", i, got)
		}
	}
	long := strings.Replace("cmd=response_to_init rc=0\ncmd=maxes vallen_max=1024\ncmd=my_kvsname kvsname=k\n", "1024", "3", 1)
	if _, err := hearPMI(long, "", 0); err == nil || !strings.Contains(err.Error(), "values of at most 3 bytes, the invitation has 4") {
		t.Error(err)
	}
	for _, place := range []string{"size=4\ncmd=set rank=4", "size=0\ncmd=set rank=0", "rank=0\ncmd=set rank=0", "size=4\ncmd=set size=4"} {
		if _, err := hearPMI("cmd=initack\ncmd=set "+place+"\ncmd=set debug=0\n"+goodPMI, "1", 0); err == nil {
			t.Errorf("%q was taken", place)
		}
	}
}

func FuzzPMI1Answer(f *testing.F) {
	f.Add(goodPMI, false)
	f.Add("cmd=initack\ncmd=set size=4\ncmd=set rank=1\ncmd=set debug=0\n"+goodPMI, true)
	for _, d := range dialects {
		f.Add(strings.Join([]string{d.init, d.maxes, d.name, d.put, d.barrier, d.get, d.finalize}, "\n")+"\n", false)
	}
	f.Fuzz(func(t *testing.T, text string, byPort bool) {
		id := ""
		if byPort {
			id = "1"
		}
		got, err := hearPMI(text, id, 1)
		if err == nil && (len(got) > pmiLine || strings.ContainsAny(got, " \n")) {
			t.Errorf("%q", got)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %v", err)
		}
	})
}

// TestInherited: the descriptor is left open for a later call, and not to children.
func TestInherited(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for range 2 {
			if c, err := l.Accept(); err == nil {
				defer c.Close()
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer c.Close()
	for range 2 {
		c, err := openInherited(int(file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if _, err := openInherited(1 << 19); err == nil || !strings.Contains(err.Error(), "PMI_FD=524288 is not an open descriptor") {
		t.Error(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := openInherited(int(null.Fd())); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Error(err)
	}
}
