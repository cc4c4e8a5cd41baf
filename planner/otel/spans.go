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

// Spans makes a span of each call of a communicator that goes through it. The spans of one call on
// all ranks have a link to the same span context, which nobody records: by its trace a backend finds them together. Calls of a
// communicator are started one after the other, so it needs no lock.
type Spans struct {
	tracer trace.Tracer
	comm   *planner.Comm
	id     [16]byte // of the communicator, from its rank 0
	seq    uint64   // of the last call
}

// NewSpans is a call of all ranks of the communicator: these agree on a number.
func NewSpans(ctx context.Context, p trace.TracerProvider, c *planner.Comm) (*Spans, error) {
	s := &Spans{tracer: p.Tracer(scope), comm: c}
	if c.Rank() == 0 {
		_, _ = rand.Read(s.id[:]) // it never fails
	}
	if err := planner.BcastNow(ctx, c, s.id[:], 0); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return s, nil
}

// Run runs the collective, one of the communicator's, in a span below that of ctx. All ranks must make the same
// calls through their Spans: links go by the number of the call.
func (s *Spans) Run(ctx context.Context, c *planner.Collective) error {
	ctx, span := s.begin(ctx, c)
	err := c.Run(ctx)
	end(span, err)
	return err
}

// Start starts the collective. The span ends when wait returns, or at once with an error. Wait must be called once.
func (s *Spans) Start(ctx context.Context, c *planner.Collective) (wait func() error, err error) {
	ctx, span := s.begin(ctx, c)
	pending, err := c.Start(ctx)
	if err != nil {
		end(span, err)
		return nil, err
	}
	return func() error {
		err := pending.Wait()
		end(span, err)
		return err
	}, nil
}

// begin begins a span.
func (s *Spans) begin(ctx context.Context, c *planner.Collective) (context.Context, trace.Span) {
	s.seq++
	ctx, span := s.tracer.Start(ctx, c.Request().Coll.String(), trace.WithLinks(trace.Link{SpanContext: s.shared()}))
	if span.IsRecording() { // texts are not made for nothing
		r := c.Request()
		span.SetAttributes(
			attribute.String("tierflow.request", r.String()), attribute.String("tierflow.plan", c.Plan().String()), attribute.Int64("tierflow.bytes", r.Bytes()),
			attribute.Int("tierflow.rank", s.comm.Rank()), attribute.Int("tierflow.size", s.comm.Size()), attribute.Int64("tierflow.call", int64(s.seq)),
		)
	}
	return ctx, span
}

// shared is what the spans of the call on all ranks link to.
func (s *Spans) shared() trace.SpanContext {
	h := sha256.Sum256(binary.BigEndian.AppendUint64(s.id[:], s.seq))
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(h[:16]), SpanID: trace.SpanID(h[16:24]), Remote: true})
}

// end ends a span.
func end(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
