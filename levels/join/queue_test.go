package join

import (
	"testing"
	"time"
)

// A full queue lets put wait; once it is loose put goes on, beyond the limit.
func TestLooseQueue(t *testing.T) {
	q := newQueue[int](1)
	q.put(1)
	done := make(chan bool)
	go func() { done <- q.put(2) }()
	select {
	case <-done:
		t.Fatal("put did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	q.loosen(true)
	if !<-done || !q.put(3) {
		t.Error("a loose queue takes nothing")
	}
	if all := q.takeAll(); len(all) != 3 || all[0] != 1 || all[1] != 2 || all[2] != 3 {
		t.Errorf("took %v, want 1 to 3", all)
	}
	q.put(4)
	q.loosen(false)
	if !q.full() {
		t.Error("the limit holds no more")
	}
}
