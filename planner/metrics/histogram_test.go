package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/metrics"
	"github.com/tierflow/tierflow/planner/raw"
)

// Large calls are all timed, a sample of small ones counts for all, and what moves no bytes has no bandwidth.
func TestHistograms(t *testing.T) {
	const large, small = 7, 4000
	err := planner.Run(t.Context(), "2x1", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]float32, 1<<17)
		bcast, err := planner.PrepareBcast(ctx, c, buf, 0)
		for range large {
			err = errors.Join(err, bcast.Run(ctx))
		}
		for range small {
			err = errors.Join(err, planner.Barrier(ctx, c))
		}
		if err != nil || c.Rank() > 0 {
			return errors.Join(err, planner.Barrier(ctx, c))
		}
		text, values := page(t)
		lint(t, text)
		for _, name := range []string{"tierflow_call_seconds", "tierflow_bus_bytes_per_second"} {
			if got := values[rank(values, name+"_count", 0, `collective="bcast"`)]; got != large {
				t.Errorf("%s counts %v bcasts, want %d\n%s", name, got, large, text)
			}
		}
		// Of 4,000 calls 125 are drawn, by 6 or so: eleven times that is never.
		if got := values[rank(values, "tierflow_call_seconds_count", 0, `collective="barrier"`)]; got < small/2 || got > 3*small/2 || int(got)%32 != 0 {
			t.Errorf("%v barriers were counted, want about %d", got, small)
		}
		if name := rank(values, "tierflow_bus_bytes_per_second_count", 0, `collective="barrier"`); values[name] != 0 {
			t.Errorf("barriers have bandwidth: %s", name)
		}
		return planner.Barrier(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Buckets are cumulative, and a value that is a bound is in its bucket.
func TestHistogramText(t *testing.T) {
	c := executor.Calls{Collective: "bcast", Plan: "p"}
	c.Took.Buckets = [14]int64{2, 0, 3, 13: 1}
	c.Took.Sum = 40_000_012_000
	u := raw.Usage{Rank: 1}
	u.Calls = []executor.Calls{c, {Collective: "barrier", Plan: "p", Count: 3}}
	var b strings.Builder
	if err := metrics.Write(&b, []raw.Usage{u}); err != nil {
		t.Fatal(err)
	}
	lint(t, b.String())
	values := parse(t, b.String())
	for bound, want := range map[string]float64{"1e-06": 2, "4e-06": 2, "1.6e-05": 5, "16.777216": 5, "+Inf": 6} {
		if got, ok := values[fmt.Sprintf(`tierflow_call_seconds_bucket{world="0",rank="1",collective="bcast",plan="p",le="%s"}`, bound)]; !ok || got != want {
			t.Errorf("%v calls up to %s, want %v:\n%s", got, bound, want, b.String())
		}
	}
	const labels = `{world="0",rank="1",collective="bcast",plan="p"}`
	if sum, count := values["tierflow_call_seconds_sum"+labels], values["tierflow_call_seconds_count"+labels]; sum != 40.000012 || count != 6 {
		t.Errorf("%v s of %v calls", sum, count)
	}
	series := 0
	for name := range values {
		if strings.Contains(name, `,collective="bcast",plan="p"`) && !strings.HasPrefix(name, "tierflow_calls_total") {
			series++
		}
	}
	if series != 16 { // and as many of bandwidth, which this call has not
		t.Errorf("%d series of a pair, want 14 buckets, a sum and a count", series)
	}
	if strings.Contains(b.String(), `seconds_bucket{world="0",rank="1",collective="barrier"`) {
		t.Error("a call that was never timed has buckets")
	}
}
