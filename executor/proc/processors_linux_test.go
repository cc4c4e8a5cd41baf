package proc

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

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
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer unix.SchedSetaffinity(0, &all)
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
	if two.apart {
		t.Error("two ranks on the same processor are taken for bound apart")
	}
	if n := two.set.Count(); n != 1 {
		t.Errorf("two ranks on one processor have %d", n)
	}
	two.add(second)
	if !two.apart {
		t.Error("ranks bound to two processors are taken for unbound")
	}
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

// A rank moves when many yields were late, ever more seldom, and is not bound by it.
func TestSpread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	if before.Count() < 2 {
		t.Skipf("%d processors; ranks are spread over two", before.Count())
	}
	var unbound processors
	unbound.add(os.Getpid())
	unbound.add(os.Getpid())
	for index := range 2 {
		m := newSpread(&unbound, index, 2)
		for _, limit := range []int{firstMove, 2 * firstMove, 4 * firstMove} {
			if m.limit != limit {
				t.Fatalf("limit %d, want %d", m.limit, limit)
			}
			for range limit + 10 {
				m.note(true)
				m.note(true)
				m.note(false)
				if m.limit > limit {
					break
				}
			}
		}
		var cpu uint32
		if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 || !m.share.IsSet(int(cpu)) {
			t.Logf("rank %d is on processor %d, its share is %v: something else has moved it since", index, cpu, m.share)
		}
		if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
			t.Errorf("after the moves the thread may run on %d processors, before on %d: %v", after.Count(), before.Count(), err)
		}
	}
	apart := unbound
	apart.apart = true
	for name, m := range map[string]spread{
		"bound": newSpread(&apart, 0, 2), "crowded": newSpread(&unbound, 0, before.Count()+1), "alone": newSpread(&unbound, 0, 1), "refused": {},
	} {
		for range 2 * firstMove {
			m.note(true)
		}
		if m.moves || m.lateYields != 2*firstMove {
			t.Errorf("%s: a rank moved", name)
		}
	}
}
