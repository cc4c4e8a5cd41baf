package executor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/tasks"
)

// Reno is in every kernel, and every user may choose it.
func TestCongestion(t *testing.T) {
	h, p := parse(t, "2x1", "shape=flat,fs=all,w=1,i=adapt/binomial")
	w, err := NewProcesses(h, proc.Config{Congestion: "reno"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := tasks.Request{Coll: tasks.Bcast, Count: 10, Type: tasks.Int32}
	do(t, w.World, job{w.World, h, r, p}.bind(t, nil, raws(numbers(h.Size(), int(r.Count)))))
	all, err := w.Congestions()
	if err != nil || len(all) < 2 || slices.ContainsFunc(all, func(name string) bool { return name != "reno" }) {
		t.Errorf("the connection's ends have %q, error %v; want reno", all, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnknownCongestion(t *testing.T) {
	h, _ := parse(t, "2x1", "shape=flat")
	_, err := proc.New(t.Context(), nil, 0, h, proc.Config{Congestion: "nosuch"})
	if err == nil || !strings.Contains(err.Error(), `"nosuch"`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("error %v; want one that says nosuch and what there is", err)
	}
}
