package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFifoProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Fifo[int]
		var twin []int
		for i := range 500 {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				odd := func(n int) bool { return n%2 == 1 }
				q.Drop(odd)
				twin = slices.DeleteFunc(twin, odd)
			case 1, 2, 3, 4:
				if len(twin) > 0 {
					if got := *q.First(); got != twin[0] {
						t.Fatalf("first is %d, want %d", got, twin[0])
					}
					q.Pop()
					twin = twin[1:]
				}
			default:
				q.Push(i)
				twin = append(twin, i)
			}
			if q.Len() != len(twin) {
				t.Fatalf("%d items, want %d", q.Len(), len(twin))
			}
		}
	})
}

func TestFifoAllocatesNothing(t *testing.T) {
	var q Fifo[[8]int]
	if n := testing.AllocsPerRun(100, func() {
		for range 10 {
			q.Push([8]int{})
		}
		for q.Len() > 0 {
			q.Pop()
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
