package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// tracer is the name of this package's spans.
const tracer = "github.com/keyload/keyload/worker"

// subject is what a worker works on, as spans tell it.
type subject struct {
	resource  string // name of the queue, topic or stream set
	partition string
	group     string // empty of a queue
}

// begin starts the span of one attempt. It is a trace of its own with a link to
// the producer's, whose delivery it is: a message may be handled much later, and
// several times.
func (s *subject) begin(ctx context.Context, provider trace.TracerProvider, p *parcel) (context.Context, trace.Span) {
	if provider == nil {
		return ctx, trace.SpanFromContext(context.Background()) // of no effect
	}
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", "keyload"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", s.resource),
		attribute.String("messaging.destination.partition.id", s.partition),
		attribute.String("messaging.message.id", p.id),
		attribute.Int64("keyload.attempt", p.attempt),
	}
	if s.group != "" {
		attributes = append(attributes, attribute.String("messaging.consumer.group.name", s.group))
	}
	options := []trace.SpanStartOption{
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...),
	}
	sent := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(p.headers))
	if trace.SpanContextFromContext(sent).IsValid() {
		options = append(options, trace.WithLinks(trace.LinkFromContext(sent)))
	}
	return provider.Tracer(tracer).Start(ctx, "process "+s.resource, options...)
}

// failed notes in the span why the attempt came to nothing.
func (h *delivery) failed(what string, err error) {
	h.span.RecordError(err)
	h.span.SetStatus(codes.Error, what)
}
