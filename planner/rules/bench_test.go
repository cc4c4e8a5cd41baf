package rules_test

import (
	"testing"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// fiveDeep is like the rules of the paper's section 6.1: five comparisons on average.
const fiveDeep = `
$small = 2KiB
bcast:
	if ranks <= 4 then
		(if bytes <= $small then w=1 elif bytes <= 64KiB then w=2 elif commutative then w=3 else default)
	elif bytes <= $small and ranks <= 32 and root < 8 and commutative then w=4
	elif pow2(ranks) then (if bytes <= 512KiB then w=5 else w=6)
	elif nodes > 8 then (if root = 0 then w=7 elif bytes < 32KiB * nodes then w=8 else w=9)
	else w=2
`

// sets is how many requests the paper goes through.
const sets = 180_000

// fill makes p the i-th of them.
func fill(p *rules.Params, i int) {
	ranks := int64(2 + i%60)
	p.Set(rules.Ranks, ranks)
	p.Set(rules.Nodes, (ranks+1)/2)
	p.Set(rules.Bytes, int64(1)<<(i/60%22)+int64(i/1320%30))
	p.Set(rules.Root, int64(i/39600)%2)
	p.Set(rules.Commutative, 1)
}

// BenchmarkDecide goes through 180,000 requests, as the paper does: 126 ns each there, and 64
// where the rules were compiled. As there, the time of making a request's parameters is in it;
// BenchmarkFill is that alone. depth is the mean number of comparisons.
func BenchmarkDecide(b *testing.B) {
	base, err := rules.Parse("five", fiveDeep)
	if err != nil {
		b.Fatal(err)
	}
	p := &rules.Params{Coll: tasks.Bcast}
	depth, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		fill(p, i)
		_, n := base.Decide(p)
		depth += n
		if i++; i == sets {
			i = 0
		}
	}
	b.ReportMetric(float64(depth)/float64(b.N), "depth")
}

func BenchmarkFill(b *testing.B) {
	p := &rules.Params{Coll: tasks.Bcast}
	i := 0
	for b.Loop() {
		fill(p, i)
		if i++; i == sets {
			i = 0
		}
	}
}
