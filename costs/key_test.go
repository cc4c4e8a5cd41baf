package costs_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

func TestPipelineKey(t *testing.T) {
	const choices = ",s=sm,i=adapt/chain/32KiB,ir=nbc/chain"
	sum := tasks.Request{Coll: tasks.Allreduce, Count: 1 << 20, Type: tasks.Float32, Op: tasks.Sum}
	few := sum
	few.Count = 100
	for _, test := range []struct {
		r          tasks.Request
		spec, plan string
		want       string
	}{
		{sum, "4x2", "shape=han,fs=65539,w=4" + choices, "shape=han task=allreduce levels=i4,s2 fs=64KiB w=4 by=ib:adapt/chain/32KiB,ir:nbc/chain,sb:sm,sr:sm type=f32 op=sum"},
		{sum, "a:3,b:1", "shape=han,fs=64KiB,w=2" + choices, "shape=han task=allreduce levels=i2,s1-3 fs=64KiB w=2 by=ib:adapt/chain/32KiB,ir:nbc/chain,sb:sm,sr:sm type=f32 op=sum"},
		{few, "4x1", "shape=han,fs=64KiB,w=2" + choices, "shape=han task=allreduce levels=i4,s1 fs=400B w=2 by=ib:adapt/chain/32KiB,ir:nbc/chain type=f32 op=sum"},
		{sum, "4x1", "shape=rsag,fs=64KiB,w=2,s=sm,i=nbc/ring", "shape=rsag task=allreduce levels=i4,s1 fs=64KiB w=2 by=iag:nbc/ring,irs:nbc/ring type=f32 op=sum"},
		{request(tasks.Bcast, 9), "4x2/rr", "shape=flat,fs=64KiB,w=2" + choices, "shape=flat task=bcast levels=4x2/rr fs=64KiB w=2 by=ib:adapt/chain/32KiB"},
		{request(tasks.Alltoall, 100), "4x1", "shape=flat,fs=all,w=1,eager=16KiB,ia=adapt/pairwise", "shape=flat task=alltoall levels=4x1 fs=6400KiB w=1 eager=16KiB by=ia:adapt/pairwise"},
		{request(tasks.Bcast, 9), "4x2", "shape=flat,fs=64KiB,w=2,eager=16KiB" + choices, "shape=flat task=bcast levels=4x2 fs=64KiB w=2 by=ib:adapt/chain/32KiB"},
		{tasks.Request{Coll: tasks.Barrier}, "2x2", "shape=han,fs=all,w=1" + choices, "shape=han task=barrier levels=i2,s2 fs=0B w=1 by=ib:adapt/chain/32KiB,ir:nbc/chain,sb:sm,sr:sm"},
	} {
		got, err := costs.PipelineKey(test.r, tasktest.Topology(t, test.spec), tasktest.Plan(t, test.plan))
		if err != nil || got.String() != test.want {
			t.Errorf("%v on %s:\n%v, %v\nwant\n%s", test.r, test.spec, got, err, test.want)
		}
		if back, err := costs.ParseKey(got.String()); err != nil || back != got {
			t.Errorf("%v reads back as %v, %v", got, back, err)
		}
	}
}

// Layouts that no short text describes have keys that read back too.
func TestKeyOfATree(t *testing.T) {
	topo, err := tasktest.Topology(t, "a:2,b:3").Sub([]levels.Rank{0, 4, 3, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	key, err := costs.PipelineKey(request(tasks.Bcast, 9), topo, tasktest.Plan(t, "shape=flat,fs=64KiB,w=2,i=adapt"))
	if err != nil {
		t.Fatal(err)
	}
	if back, err := costs.ParseKey(key.String()); err != nil || back != key || !strings.Contains(key.Levels, "tree:") {
		t.Errorf("%v reads back as %v, %v", key, back, err)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	const good = "shape=han task=ib levels=i4,s2 fs=64KiB"
	for text, want := range map[string]string{
		"":                                      "shape= is missing",
		"shape=han task=ib":                     "levels= is missing",
		good + " fs=1KiB":                       "fs is given twice",
		good + " colour=red":                    `unknown word "colour"`,
		good + " by=":                           `"by" is not name=value`,
		good + " w=sm":                          "a window is a number",
		"shape=round task=ib levels=1":          `unknown shape "round"`,
		strings.Replace(good, "64KiB", "-1", 1): `"-1" is not a byte count`,
	} {
		if _, err := costs.ParseKey(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := costs.ParseKey(good); err != nil {
		t.Error(err)
	}
}
