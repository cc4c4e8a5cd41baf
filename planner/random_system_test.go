package planner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
)

// randomVariable tells a process of this test's binary that it is a rank of a random
// program, and of which.
const randomVariable = "TIERFLOW_TEST_RANDOM"

// randomAnswer is what a rank's report begins with.
const randomAnswer = "random-report "

// runSystem runs a program on real processes.
func (p *randomProgram) runSystem(t *testing.T) (reports []randomReport, hangs string) {
	address, listener := rendezvous(t)
	defer listener.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*randomPatience)
	defer cancel()
	n := len(p.paths)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said, errs := make([]bytes.Buffer, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		var at join.Config
		p.at(r, &at)
		rank := exec.CommandContext(ctx, self, "-test.run=^TestRandomRank$", "-random.faults="+randomFaultWanted, "-random.without="+randomWithout)
		rank.Stdout, rank.Stderr = &said[r], &said[r]
		rank.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", randomVariable, p.seed, r), "TIERFLOW_SECRET=the secret of a test, which is long enough", "TIERFLOW_TLS="+os.Getenv("TIERFLOW_TEST_TLS"), "GOTRACEBACK=all",
			fmt.Sprintf("TIERFLOW_RANK=%d", r), fmt.Sprintf("TIERFLOW_SIZE=%d", n), "TIERFLOW_RENDEZVOUS="+address,
			"TIERFLOW_NODE="+at.Node, "TIERFLOW_NUMA="+at.NUMA, "TIERFLOW_SITE="+at.Site)
		if r == 0 {
			giveListener(rank, listener)
		}
		rank.Cancel = func() error { return rank.Process.Signal(syscall.SIGQUIT) } // it tells where it hangs
		rank.WaitDelay = 5 * time.Second
		all.Go(func() { errs[r] = rank.Run() })
	}
	all.Wait()
	reports = make([]randomReport, n)
	for r, err := range errs {
		text := said[r].String()
		if err != nil {
			hangs += fmt.Sprintf("rank %d: %v\n%s\n", r, err, text)
		} else if _, report, ok := strings.Cut(text, randomAnswer); !ok {
			hangs += fmt.Sprintf("rank %d says only %s\n", r, text)
		} else if err := json.NewDecoder(strings.NewReader(report)).Decode(&reports[r]); err != nil {
			hangs += fmt.Sprintf("rank %d: %v: %s\n", r, err, report)
		}
	}
	return reports, hangs
}

// rendezvous returns an address for processes to meet at, and a listener there for rank 0's, to
// be closed.
func rendezvous(t *testing.T) (address string, listener *os.File) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if listener, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), listener
}

// giveListener lets a process listen as rank 0.
func giveListener(c *exec.Cmd, listener *os.File) {
	c.ExtraFiles = []*os.File{listener}
	c.Env = append(c.Env, "TIERFLOW_RENDEZVOUS_FD=3")
}

// TestRandomRank is a rank of a random program.
func TestRandomRank(t *testing.T) {
	var seed uint64
	r := &randomRank{}
	if text := os.Getenv(randomVariable); text == "" {
		t.Skip("runs only as a process that TestRandomPrograms starts")
	} else if _, err := fmt.Sscan(text, &seed, &r.rank); err != nil {
		t.Fatal(err)
	}
	r.p = drawProgram(seed, randomSystem, randomFaultWanted != "none")
	r.p.without(numbers(t, randomWithout))
	r.fault = r.p.fault
	var log lockedBuffer
	var err error
	if r.world, err = planner.Join(t.Context(), r.p.options(&log)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // its only end is the process's, if that hangs
		select {
		case <-done:
		case <-time.After(randomPatience):
			fmt.Fprintf(os.Stderr, "hangs:\n%s%s", r.where(), log.String())
			r.world.Dump(os.Stderr)
			panic("hangs")
		}
	}()
	report, err := json.Marshal(r.live())
	close(done)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", randomAnswer, report)
}
