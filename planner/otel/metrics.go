package otel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tierflow/tierflow/planner/raw"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/tierflow/tierflow/planner/otel"

// instrument is a metric of a rank's usage.
type instrument struct {
	name, unit, description string
	gauge                   bool // it may fall; else it is a counter
	addTo                   func(u *raw.Usage, add adder)
}

// adder takes a value and its attributes, but for those of the rank.
type adder func(value float64, more ...attribute.KeyValue)

var instruments = []instrument{
	{"tierflow.calls", "{call}", "Calls of collectives that have begun.", false, func(u *raw.Usage, add adder) {
		for _, c := range u.Calls {
			add(float64(c.Count), attribute.String("tierflow.collective", c.Collective), attribute.String("tierflow.plan", c.Plan))
		}
	}},
	{"tierflow.sent", "By", "Payload bytes sent by messages.", false, func(u *raw.Usage, add adder) {
		addByLevel(u, u.Sent, add)
	}},
	{"tierflow.read", "By", "Bytes copied or reduced from where other ranks keep them.", false, func(u *raw.Usage, add adder) {
		addByLevel(u, u.Read, add)
	}},
	{"tierflow.waited", "s", "How long calls have waited with nothing to do.", false, func(u *raw.Usage, add adder) {
		add(u.Waited.Seconds())
	}},
	{"tierflow.stalls", "{stall}", "Times that a call stood still for Options.StallAfter.", false, func(u *raw.Usage, add adder) {
		add(float64(u.Stalls))
	}},
	{"tierflow.running", "{call}", "Calls and transfers that have begun and not ended.", true, func(u *raw.Usage, add adder) {
		add(float64(u.Running))
	}},
	{"tierflow.waiting", "{call}", "Calls that have stood still for 100 ms or more.", true, func(u *raw.Usage, add adder) {
		add(float64(u.Waiting))
	}},
	{"tierflow.broken", "{communicator}", "Communicators that have failed.", true, func(u *raw.Usage, add adder) {
		add(float64(u.Broken))
	}},
}

// addByLevel adds a value for each level.
func addByLevel(u *raw.Usage, bytes []int64, add adder) {
	for k, n := range bytes {
		add(float64(n), attribute.String("tierflow.level", u.Levels[k]))
	}
}

// Observe lets a provider's readers have the metrics of this process, until the registration is
// unregistered. Only a reader's look costs something.
func Observe(p metric.MeterProvider) (metric.Registration, error) {
	meter := p.Meter(scope)
	made := make([]metric.Float64Observable, len(instruments))
	all := make([]metric.Observable, len(instruments))
	for i, in := range instruments {
		var err error
		if in.gauge {
			made[i], err = meter.Float64ObservableGauge(in.name, metric.WithUnit(in.unit), metric.WithDescription(in.description))
		} else {
			made[i], err = meter.Float64ObservableCounter(in.name, metric.WithUnit(in.unit), metric.WithDescription(in.description))
		}
		if err != nil {
			return nil, fmt.Errorf("otel: %s: %w", in.name, err)
		}
		all[i] = made[i]
	}
	r, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		usages := raw.Usages()
		for n := range usages {
			u := &usages[n]
			who := []attribute.KeyValue{attribute.Int("tierflow.world", u.World), attribute.Int("tierflow.rank", u.Rank)}
			for i, in := range instruments {
				in.addTo(u, func(value float64, more ...attribute.KeyValue) {
					o.ObserveFloat64(made[i], value, metric.WithAttributes(append(more, who...)...))
				})
			}
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return r, nil
}
