package proc

import (
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor"
)

// boundProcess starts a process that waits, bound to one of this process's processors.
func boundProcess(t *testing.T, which int) (pid int) {
	t.Helper()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() <= which {
		t.Skipf("%d processors; this needs %d", all.Count(), which+1)
	}
	cpu := 0
	for left := which; left > 0 || !all.IsSet(cpu); cpu++ {
		if all.IsSet(cpu) {
			left--
		}
	}
	cmd := exec.Command("sleep", "60")
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its narrow set
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

// Ranks that are bound to a processor each have as many as they are, together.
func TestProcessorsOfBoundRanks(t *testing.T) {
	var two processors
	first, second := boundProcess(t, 0), boundProcess(t, 1)
	two.add(first)
	two.add(first)
	if n := two.set.Count(); n != 1 {
		t.Errorf("two ranks on one processor have %d", n)
	}
	two.add(second)
	two.add(-1)
	if n := two.set.Count(); n != 2 {
		t.Errorf("ranks on two processors have %d", n)
	}
}

// A rank is patient if every rank of its node has a processor.
func TestPatience(t *testing.T) {
	for _, c := range []struct{ node, size, processors, spin, most int }{
		{2, 2, 2, procSpin, executor.MostLooks},
		{2, 4, 2, procSpin, linkPolls},
		{1024, 1024, 2, procSpinCrowded, executor.FewestLooks},
		{1024, 2048, 2, procSpinCrowded, executor.FewestLooks},
	} {
		var p process
		for i := range c.processors {
			p.shared.set.Set(i)
		}
		if spin := p.choosePatience(c.node, c.size); spin != c.spin || p.most != c.most {
			t.Errorf("%d of %d ranks on a node with %d processors: spin %d, at most %d looks; want %d, %d",
				c.node, c.size, c.processors, spin, p.most, c.spin, c.most)
		}
	}
}
