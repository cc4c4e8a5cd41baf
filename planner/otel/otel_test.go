package otel_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/otel"
	"github.com/tierflow/tierflow/tasks"
)

// collect returns the values of a metric by its attributes.
func collect(t *testing.T, r *metric.ManualReader) map[string]map[attribute.Set]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	values := map[string]map[attribute.Set]float64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[float64]
			switch data := m.Data.(type) {
			case metricdata.Sum[float64]:
				points = data.DataPoints
			case metricdata.Gauge[float64]:
				points = data.DataPoints
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
			values[m.Name] = map[attribute.Set]float64{}
			for _, p := range points {
				values[m.Name][p.Attributes] = p.Value
			}
		}
	}
	return values
}

func of(rank int, more ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(more, attribute.Int("tierflow.world", 0), attribute.Int("tierflow.rank", rank))...)
}

// A reader has what ranks have done, and nothing once the registration is gone.
func TestObserve(t *testing.T) {
	reader := metric.NewManualReader()
	registration, err := otel.Observe(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	const plan = "shape=han,i=adapt/binomial,s=adapt/binomial"
	err = planner.Run(t.Context(), "2x1", &planner.Options{Plan: plan}, func(ctx context.Context, c *planner.Comm) error {
		err := planner.Bcast(ctx, c, make([]float32, 1<<10), 0)
		if c.Rank() == 0 {
			values := collect(t, reader)
			if got := values["tierflow.sent"][of(0, attribute.String("tierflow.level", "network"))]; got != 4096 {
				t.Errorf("rank 0 has sent %v bytes, want 4096: %v", got, values)
			}
			calls := 0.0
			for set, n := range values["tierflow.calls"] {
				if name, _ := set.Value("tierflow.collective"); name.AsString() == "bcast" && set.HasValue("tierflow.plan") {
					calls += n
				}
			}
			if calls < 1 || len(values) != 8 {
				t.Errorf("%v bcasts in %d metrics: %v", calls, len(values), values)
			}
		}
		return errors.Join(err, planner.Barrier(ctx, c))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Unregister(); err != nil {
		t.Fatal(err)
	}
	if values := collect(t, reader); len(values["tierflow.calls"]) > 0 {
		t.Errorf("after that: %v", values)
	}
}

// Spans of one call have the same link on all ranks, and another one than the next call's. They are
// below the caller's span.
func TestSpans(t *testing.T) {
	const ranks, calls = 4, 3
	recorded := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorded))
	var mu sync.Mutex
	parents := map[string]int{}
	err := planner.Run(t.Context(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		ctx, step := provider.Tracer("test").Start(ctx, "step")
		defer step.End()
		mu.Lock()
		parents[step.SpanContext().SpanID().String()] = c.Rank()
		mu.Unlock()
		spans, err := otel.NewSpans(ctx, provider, c)
		if err != nil {
			return err
		}
		x := []float32{1, float32(c.Rank())}
		sum, err := planner.PrepareAllreduce(ctx, c, x, x, tasks.Sum)
		if err != nil {
			return err
		}
		for range calls - 1 {
			err = errors.Join(err, spans.Run(ctx, sum))
		}
		wait, wrong := spans.Start(ctx, sum)
		if err = errors.Join(err, wrong); err != nil {
			return err
		}
		return wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]map[int64]int{} // by trace: calls, and how many ranks
	for _, s := range recorded.Ended() {
		if s.Name() == "step" {
			continue
		}
		set := attribute.NewSet(s.Attributes()...)
		call, _ := set.Value("tierflow.call")
		request, _ := set.Value("tierflow.request")
		rank, _ := set.Value("tierflow.rank")
		if by, known := parents[s.Parent().SpanID().String()]; !known || int64(by) != rank.AsInt64() || s.Name() != "allreduce" || request.AsString() != "allreduce 2 f32 sum" || len(s.Links()) != 1 {
			t.Errorf("%s of rank %v, %v, with %d links below %v", s.Name(), rank.AsInt64(), request.AsString(), len(s.Links()), s.Parent())
			continue
		}
		id := s.Links()[0].SpanContext.TraceID().String()
		if links[id] == nil {
			links[id] = map[int64]int{}
		}
		links[id][call.AsInt64()]++
	}
	if len(links) != calls {
		t.Errorf("%d links of %d calls: %v", len(links), calls, links)
	}
	for id, by := range links {
		if len(by) != 1 {
			t.Errorf("link %s is of calls %v", id, by)
		}
		for call, n := range by {
			if n != ranks {
				t.Errorf("call %d has %d spans with its link, want %d", call, n, ranks)
			}
		}
	}
}

// A call that fails says so in its span.
func TestSpanOfFailure(t *testing.T) {
	recorded := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorded))
	_ = planner.Run(t.Context(), "1x1", nil, func(ctx context.Context, c *planner.Comm) error {
		spans, err := otel.NewSpans(ctx, provider, c)
		if err != nil {
			return err
		}
		barrier, err := planner.PrepareBarrier(ctx, c)
		if err != nil {
			return err
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := spans.Run(ended, barrier); !errors.Is(err, context.Canceled) {
			t.Errorf("a call with an ended context: %v", err)
		}
		return nil
	})
	all := recorded.Ended()
	if len(all) != 1 || all[0].Status().Code != codes.Error || len(all[0].Events()) != 1 {
		t.Errorf("%d spans: %+v", len(all), all)
	}
}
