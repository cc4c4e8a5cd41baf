package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// paperRule is the first example of rules; it must work as it stands.
const paperRule = "bcast: if bytes <= 4KiB then shape=flat,ib=adapt/binomial else default\n"

// planOf is what a communicator of 4x2 processes would choose for a bcast.
func planOf(t *testing.T, bytes int64, o *planner.Options) (plan tasks.Plan, text string) {
	t.Helper()
	on := tasktest.Topology(t, "4x2")
	d, err := raw.Inspect(tasks.Request{Coll: tasks.Bcast, Count: bytes, Type: tasks.Uint8}, on, o)
	if err != nil {
		t.Fatal(err)
	}
	return d.Plan, d.Text
}

// What is forced goes before rules, rules before a table, and a table before the built-in rule.
func TestRulesOrder(t *testing.T) {
	const table = `{"tierflow_table":2,"provenance":{},"entries":[{"collective":"bcast","levels":{"i":4,"s":2},"layout":"block","ranks":"processes","bytes":4096,
		"candidates":[{"plan":"shape=han,fs=all,w=9,ib=adapt/binary,sb=sm/slots","ns":5000,"from":"measured"}]}]}`
	for _, test := range []struct {
		o     planner.Options
		bytes int64
		want  string
	}{
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte(paperRule))}, 4096, "shape=flat,fs=all,w=4,i=adapt/binomial,ib=adapt/binomial"},
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte(paperRule))}, 4097, "shape=han,fs=all,w=4,i=adapt/binomial,s=sm"},
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte(paperRule)), Plan: "shape=han"}, 4096, "shape=han,fs=all,w=4,i=adapt/binomial,ib=adapt/binomial,s=sm/rings"},
		{planner.Options{Rules: "rules", Table: "table", Files: fstest.MapFS{"rules": {Data: []byte(paperRule)}, "table": {Data: []byte(table)}}}, 4096, "shape=flat,fs=all,w=4,i=adapt/binomial,ib=adapt/binomial"},
		{planner.Options{Rules: "rules", Table: "table", Files: fstest.MapFS{"rules": {Data: []byte(paperRule)}, "table": {Data: []byte(table)}}}, 4097, "shape=han,fs=all,w=9,ib=adapt/binary,sb=sm/slots"},
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte("bcast: if balanced then w=7,fs={near(bytes/3, 1KiB, 64KiB)}"))}, 96 << 10, "shape=han,fs=32KiB,w=7,i=adapt/chain,s=sm"},
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte("shape bcast: shape=flat\nsegments bcast: w=9\ntask bcast: by=adapt/binary"))}, 4096, "shape=flat,fs=all,w=9,i=adapt/binary"},
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte("bcast: shape=han,i=solo"))}, 4096, "shape=han,fs=all,w=4,i=adapt/binomial,s=sm/rings"}, // no rank could compile it
	} {
		if plan, text := planOf(t, test.bytes, &test.o); plan.String() != test.want {
			t.Errorf("%s with %q: %v, want %s\n%s", test.o.Files, test.o.Plan, plan, test.want, text)
		}
	}
	_, text := planOf(t, 4096, &planner.Options{Rules: "rules", Files: inMemory("rules", []byte(paperRule))})
	wantText(t, "Explain", text,
		"  rules: rules:1: shape=flat,ib=adapt/binomial\n  rules: line 1: bytes <= 4KiB holds: bytes 4KiB\n", "predicted: ",
	)
	_, text = planOf(t, 4096, &planner.Options{Rules: "rules", Files: inMemory("rules", []byte("bcast: shape=han,i=solo"))})
	if !strings.Contains(text, "rules: unfit, so others decide: shape=han") {
		t.Error(text)
	}
}

// Rules may ask about links, by their name or on a known machine.
func TestRulesAskTheMachine(t *testing.T) {
	rules := []byte("bcast: if rate >= 10gbit then w=7 elif rate < 10gbit and latency > 20us and cores = 2 then w=6 elif rate < 10gbit then w=5")
	const machine = `{"version":1,"provenance":{"method":"assumed"},"links":[{"level":"i","latency_ns":30000,"byte_ns":8},{"level":"s","latency_ns":100}],"copy_byte_ns":0.1,"reduce_byte_ns":0.2}`
	for _, test := range []struct {
		links, machine string
		window         int
	}{
		{"", "", 4}, {"10gbit", "", 7}, {"1gbit", "", 5}, {"ours", "", 4}, {"10gbit", machine, 6},
	} {
		o := &planner.Options{Rules: "rules", Files: inMemory("rules", rules), Links: test.links}
		if test.machine != "" {
			o.Machine, o.Files = "machine", fstest.MapFS{"rules": {Data: rules}, "machine": {Data: []byte(test.machine)}}
		}
		if plan, text := planOf(t, 4096, o); plan.Window != test.window {
			t.Errorf("links %q, machine %q: %v, want w=%d\n%s", test.links, test.machine, plan, test.window, text)
		}
	}
}

func TestRulesComplaints(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bad.rules")
	if err := os.WriteFile(name, []byte("\nbcast: i=adapt/binomal"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv(env.Rules, name)
	for _, test := range []struct {
		o    planner.Options
		want string
	}{
		{planner.Options{}, "TIERFLOW_RULES: " + name + `:2:8: i=adapt/binomal: `},
		{planner.Options{Rules: "nowhere"}, "Options.Rules: open nowhere: "},
		{planner.Options{Rules: "other", Files: inMemory("rules", []byte{})}, "Options.Rules: open other: no such file"},
		{planner.Options{Rules: "rules", Files: inMemory("rules", []byte("bcast"))}, "Options.Rules: rules:1:6: the end of the file; expected a colon"},
	} {
		if comms, err := planner.Local("2", &test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %s", test.o, err, test.want)
			for _, c := range comms {
				c.Close()
			}
		}
	}
}

// Rank 0's rules hold for all ranks, whatever others have.
func TestRulesOfRank0(t *testing.T) {
	mine := &planner.Options{Rules: "rules", Files: inMemory("rules", []byte("$w = 7\nbcast: w=$w,shape=flat"))}
	comms := joinEach(t, 4, func(r int) *planner.Options {
		if r == 0 {
			return mine
		}
		return &planner.Options{Rules: "rules", Files: inMemory("rules", []byte("not even read"))}
	}, onNodes(2))
	for r, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, 1000)
		if c.Rank() == 1 {
			buf[999] = 999
		}
		col, err := planner.PrepareBcast(ctx, c, buf, 1)
		if err == nil {
			err = col.Run(ctx)
		}
		if err != nil {
			return err
		}
		if text := col.Explain(); !strings.Contains(text, "plan: shape=flat,fs=all,w=7") || !strings.Contains(text, "rules: rules of rank 0:2: w=$w,shape=flat\n") || buf[999] != 999 {
			return fmt.Errorf("%d by\n%s", buf[999], text)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	closeAll(t, comms)
}

// What Set changes holds for collectives created later, one-shot calls too, on all ranks, and
// for none of another communicator.
func TestSet(t *testing.T) {
	o := &planner.Options{Rules: "rules", Files: inMemory("rules", []byte("$small = 1KiB\nbcast: if bytes <= $small then shape=flat,w=7 else shape=flat,w=5"))}
	set := func(ctx context.Context, c *planner.Comm) error {
		buf := make([]byte, 4096)
		before, err := planner.PrepareBcast(ctx, c, buf, 0)
		if err != nil {
			return err
		}
		other, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for _, run := range []func() error{
			func() error { return planner.Bcast(ctx, c, buf, 0) },
			func() error { return c.Set(ctx, "small", int64(4096+c.Rank())) }, // rank 0's holds
			func() error { return planner.Bcast(ctx, c, buf, 0) },
			func() error { return before.Run(ctx) },
		} {
			if err := run(); err != nil {
				return err
			}
		}
		after, err := planner.PrepareBcast(ctx, c, buf, 0)
		if err != nil {
			return err
		}
		elsewhere, err := planner.PrepareBcast(ctx, other, buf, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(after.Run(ctx), elsewhere.Run(ctx)); err != nil {
			return err
		}
		if got := []int{before.Plan().Window, after.Plan().Window, elsewhere.Plan().Window}; !slices.Equal(got, []int{5, 7, 5}) {
			return fmt.Errorf("windows before, after and elsewhere are %v", got)
		}
		changed, err := before.Replan()
		again, err2 := after.Replan()
		if err := errors.Join(err, err2, before.Run(ctx)); err != nil || !changed || again || before.Plan().Window != 7 {
			return fmt.Errorf("decided again: %v, %v, %v: %w", changed, again, before.Plan(), err)
		}
		if v, err := c.Value("small"); v != 4096 || err != nil {
			return fmt.Errorf("$small is %d, %w", v, err)
		}
		if err := c.Set(ctx, "large", 1); err == nil || !strings.Contains(err.Error(), "$large: no such value; rules") {
			return fmt.Errorf("an unknown name: %w", err)
		}
		if err := c.Set(ctx, "small", -1); err == nil || !strings.Contains(err.Error(), "allowed are 0 and more") {
			return fmt.Errorf("a negative value: %w", err)
		}
		return other.Close()
	}
	t.Run("processes", func(t *testing.T) { processes(t, 4, 2, o, set) })
	t.Run("goroutines", func(t *testing.T) {
		comms := localComms(t, "2x2", o)
		for r, err := range each(comms, set) {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		closeAll(t, comms)
	})
	alone := localComms(t, "1", nil)
	wantError(t, "set", alone[0].Set(t.Context(), "small", 1), "the communicator has no rules")
	closeAll(t, alone)
}

// A function is asked after rules.
func TestDecideOption(t *testing.T) {
	o := &planner.Options{Rules: "rules", Files: inMemory("rules", []byte("bcast: if bytes = 8 then w=2")), Decide: func(p *rules.Params) (string, bool) {
		switch p.Get(rules.Bytes) {
		case 8, 4096:
			return "shape=flat,w=7", true
		case 16:
			return "shape=round", true
		}
		return "", false
	}}
	for bytes, window := range map[int64]int{8: 2, 4096: 7, 4097: 4} {
		if plan, text := planOf(t, bytes, o); plan.Window != window {
			t.Errorf("%d bytes: %v\n%s", bytes, plan, text)
		}
	}
	_, err := planner.Decide(tasks.Request{Coll: tasks.Bcast, Count: 16, Type: tasks.Uint8}, tasktest.Topology(t, "2"), o)
	wantError(t, "a round shape", err, `Options.Decide: plan "shape=round": unknown shape`)
}
