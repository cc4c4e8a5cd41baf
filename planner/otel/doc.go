// Package otel shows what the ranks of a process do to OpenTelemetry: metrics of all that they
// have done, and a span for each call that goes through it. It is a module of its own, so that
// other users of tierflow have none of OpenTelemetry's modules.
//
//	registration, err := otel.Observe(meterProvider)
//	spans, err := otel.NewSpans(ctx, tracerProvider, comm) // on all ranks
//	err = spans.Run(ctx, sum)                              // in place of sum.Run(ctx)
//
// The metrics are counters and gauges of [planner.Usages], all with the attributes tierflow.world and tierflow.rank:
//
//	tierflow.calls     calls of collectives that have begun, by tierflow.collective and tierflow.plan
//	tierflow.sent      payload bytes sent by messages, by tierflow.level
//	tierflow.read      bytes copied or reduced from where other ranks keep them, by tierflow.level
//	tierflow.waited    seconds that calls have waited with nothing to do; of all ranks a late one waits least
//	tierflow.stalls    times that a call stood still for Options.StallAfter
//	tierflow.running   calls and transfers that have begun and not ended
//	tierflow.waiting   calls of them that have stood still for 100 ms or more
//	tierflow.broken    communicators that have failed
//
// How long calls take is in spans here, and in the histograms of package planner/metrics.
package otel
