// Package otel shows OpenTelemetry what the ranks of a process do: metrics of all their calls, and a
// span for each call made through [Spans]. It is a module of its own, so other users of tierflow
// download none of OpenTelemetry's.
//
//	registration, err := otel.Observe(meterProvider)
//	spans, err := otel.NewSpans(ctx, tracerProvider, comm) // on all ranks
//	err = spans.Run(ctx, sum)                              // in place of sum.Run(ctx)
//
// The metrics are counters and gauges of [raw.Usages], all with the attributes tierflow.world and tierflow.rank:
//
//	tierflow.calls     calls of collectives that have begun, by tierflow.collective and tierflow.plan
//	tierflow.sent      payload bytes sent by messages, by tierflow.level
//	tierflow.read      bytes copied or reduced out of other ranks' memory, by tierflow.level
//	tierflow.waited    seconds of calls with nothing to do; of all ranks a late one waits least
//	tierflow.stalls    standstills of a call for Options.StallAfter
//	tierflow.running   calls and transfers that have begun and not ended
//	tierflow.waiting   those of them in a standstill of 100 ms or more
//	tierflow.broken    communicators that have failed
//
// How long calls take is in spans here, and in the histograms of package planner/metrics.
package otel
