package otel

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/tierflow/tierflow/planner"
)

// Spans makes spans of a communicator's calls. The spans of one call on all ranks have a link to the
// same span context, so that a backend finds them together; nobody records that context. It
// needs no lock: calls of a communicator are started one after the other.
type Spans struct {
	tracer trace.Tracer
	comm   *planner.Comm
	id     [16]byte // of the communicator, from its rank 0
	seq    uint64   // of the last call
}

// NewSpans makes a communicator's Spans. All its ranks must call it, for they agree on a number.
func NewSpans(ctx context.Context, p trace.TracerProvider, c *planner.Comm) (*Spans, error) {
	s := &Spans{tracer: p.Tracer(scope), comm: c}
	if c.Rank() == 0 {
		_, _ = rand.Read(s.id[:]) // it never fails
	}
	if err := planner.Bcast(ctx, c, s.id[:], 0); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return s, nil
}

// Run runs a collective of the communicator in a span below that of ctx. All ranks must make the same
// calls through their Spans: links go by the number of the call.
func (s *Spans) Run(ctx context.Context, c *planner.Collective) error {
	ctx, span := s.begin(ctx, c)
	err := c.Run(ctx)
	endSpan(span, err)
	return err
}

// Start starts a collective like [Spans.Run]. The span ends when wait returns, or at once with an
// error. Wait must be called once.
func (s *Spans) Start(ctx context.Context, c *planner.Collective) (wait func() error, err error) {
	ctx, span := s.begin(ctx, c)
	pending, err := c.Start(ctx)
	if err != nil {
		endSpan(span, err)
		return nil, err
	}
	return func() error {
		err := pending.Wait(ctx)
		endSpan(span, err)
		return err
	}, nil
}

// begin starts the span of the next call.
func (s *Spans) begin(ctx context.Context, c *planner.Collective) (context.Context, trace.Span) {
	s.seq++
	ctx, span := s.tracer.Start(ctx, c.Request().Coll.String(), trace.WithLinks(trace.Link{SpanContext: s.callContext()}))
	if span.IsRecording() { // else nobody reads the texts
		r := c.Request()
		span.SetAttributes(
			attribute.String("tierflow.request", r.String()), attribute.String("tierflow.plan", c.Plan().String()), attribute.Int64("tierflow.bytes", r.Bytes()),
			attribute.Int("tierflow.rank", s.comm.Rank()), attribute.Int("tierflow.size", s.comm.Size()), attribute.Int64("tierflow.call", int64(s.seq)),
		)
	}
	return ctx, span
}

// callContext returns the span context of the last call, equal on all ranks.
func (s *Spans) callContext() trace.SpanContext {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(s.id[:], s.seq))
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(h[:16]), SpanID: trace.SpanID(h[16:24]), Remote: true})
}

// endSpan ends a span, with a call's error if there is one.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
