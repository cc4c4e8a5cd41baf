package process

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// child starts a process that lives until its input ends.
func child(t *testing.T) (c *exec.Cmd, end func()) {
	t.Helper()
	c = exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip("no cat: ", err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	return c, func() { in.Close() }
}

// The end of a process is seen when it comes, also before its parent has waited for it, and by looking.
func TestAwaitEnd(t *testing.T) {
	c, end := child(t)
	pid, space := c.Process.Pid, Space()
	born := Born(pid)
	if ended, stopped, known := Look(pid, born, space); ended || stopped || !known {
		t.Fatalf("a running process: ended %v, stopped %v, known %v", ended, stopped, known)
	}
	result := make(chan bool)
	go func() { result <- AwaitEnd(t.Context(), pid, born, space) }()
	end()
	if !<-result {
		t.Error("its end was not seen")
	}
	if ended, _, known := Look(pid, born, space); !ended || !known {
		t.Errorf("after its end: ended %v, known %v", ended, known)
	}
	if !AwaitEnd(t.Context(), pid, born, space) {
		t.Error("its past end was not seen")
	}
}

// A wait ends with its context, and leaves no descriptor behind.
func TestAwaitEndIsCancelled(t *testing.T) {
	c, _ := child(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan bool)
	before := descriptors(t)
	go func() { result <- AwaitEnd(ctx, c.Process.Pid, Born(c.Process.Pid), Space()) }()
	cancel()
	if <-result {
		t.Error("a running process has ended")
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A number that another process has got, or of another name space, tells nothing wrong.
func TestLookKnowsWhichProcess(t *testing.T) {
	me := os.Getpid()
	if ended, _, known := Look(me, Born(me)+1, Space()); !ended || !known {
		t.Errorf("a process that began later: ended %v, known %v", ended, known)
	}
	for _, space := range []string{"", "pid:[1]"} {
		if _, _, known := Look(me, Born(me), space); known {
			t.Errorf("a process of name space %q is known", space)
		}
		if AwaitEnd(t.Context(), me, Born(me), space) {
			t.Errorf("a process of name space %q has ended", space)
		}
	}
}
