//go:build unix

package launch

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// launchers are ways to start agents: here, and through a shell that passes on nothing.
func launchers(t *testing.T) map[string]string {
	return map[string]string{"here": launcherLocal, "hosts": script(t, `shift; exec env -i PATH=/usr/bin:/bin sh -c "$*"`)}
}

func runInput(t *testing.T, opts Options, stdin io.Reader) *result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	r := &result{}
	r.status, r.err = Run(ctx, opts, stdin, &r.stdout, &r.stderr)
	return r
}

// The input goes to rank 0, or to those that are named, and ends there too.
func TestStdin(t *testing.T) {
	for name, launcher := range launchers(t) {
		for to, want := range map[string]string{
			"": "[0] hello\n", "none": "", "2": "[2] hello\n",
			"all": "[0] hello\n[1] hello\n[2] hello\n",
		} {
			r := runInput(t, Options{Hosts: "a:2,b:1", Launcher: launcher, Stdin: to, Program: []string{"cat"}}, strings.NewReader("hello\n"))
			r.want(t, 0)
			if got := strings.Join(slices.Sorted(strings.Lines(r.stdout.String())), ""); got != want {
				t.Errorf("%s, to %q: %q, want %q", name, to, got, want)
			}
		}
	}
	runInput(t, Options{Ranks: 2, Stdin: "2", Program: []string{"cat"}}, strings.NewReader("")).
		want(t, statusOptions, `standard input for rank "2": allowed are all, none and ranks from 0 to 1`)
	runInput(t, Options{Hostfile: "-", Stdin: "0", Program: []string{"cat"}}, strings.NewReader("a\n")).want(t, statusOptions, "it holds the hosts")
}

// More than all buffers hold arrives whole.
func TestStdinIsWhole(t *testing.T) {
	var text bytes.Buffer
	for i := range byte(200) {
		text.Write(bytes.Repeat([]byte{i}, 20_011))
	}
	for name, launcher := range launchers(t) {
		r := runInput(t, Options{Hosts: "a", Launcher: launcher, NoPrefix: true, Program: []string{"cat"}}, bytes.NewReader(text.Bytes()))
		r.want(t, 0)
		if !bytes.Equal(r.stdout.Bytes(), text.Bytes()) {
			t.Errorf("%s: %d bytes came back of %d, or others", name, r.stdout.Len(), text.Len())
		}
	}
}

// endless is input without an end.
type endless struct{ given atomic.Int64 }

func (e *endless) Read(b []byte) (int, error) {
	e.given.Add(int64(len(b)))
	copy(b, bytes.Repeat([]byte("y\n"), len(b)/2))
	return len(b), nil
}

// A rank that never reads takes no more than buffers hold, and ends when it likes. One
// that closes its input, or ends, ends the reading.
func TestStdinIsNotRead(t *testing.T) {
	t.Parallel()
	for name, launcher := range launchers(t) {
		for _, program := range []string{"sleep 0.3", "exec <&-; sleep 0.3", "head -n 1 >/dev/null; exec <&-; sleep 0.3", "exit 0"} {
			var input endless
			r := runInput(t, Options{Hosts: "a:2", Launcher: launcher, Stdin: "all", Program: []string{"/bin/sh", "-c", program}}, &input)
			r.want(t, 0)
			if got, most := input.given.Load(), int64(1<<20); got > most {
				t.Errorf("%s, %s: %d bytes were read, at most %d should be", name, program, got, most)
			}
		}
	}
}

// A process that a rank leaves outside its group holds the input open, and keeps nobody.
func TestStdinOfADaemon(t *testing.T) {
	var input endless
	runInput(t, Options{Ranks: 1, Program: []string{"setsid", "-f", "sleep", "3"}}, &input).want(t, 0)
	r := runInput(t, Options{Ranks: 1, Program: []string{"/bin/sh", "-c", "setsid -f sleep 3 <&0 >/dev/null 2>&1"}}, &input)
	r.want(t, 0)
}

// Input that nobody writes keeps no job from ending, well or badly.
func TestStdinThatWaits(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	defer to.Close()
	runInput(t, Options{Ranks: 2, Program: []string{"true"}}, from).want(t, 0)
	runInput(t, Options{Ranks: 2, Program: []string{"/bin/sh", "-c", "test $TIERFLOW_RANK = 0 && exec cat; exit 7"}}, from).
		want(t, 7, "rank 1 on localhost: exit status 7")
}
