package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/worker"
)

// recorder keeps the spans that end.
type recorder struct {
	noop.TracerProvider
	mu    sync.Mutex
	ended []*span
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return &recording{to: r} }

type recording struct {
	noop.Tracer
	to *recorder
}

func (t *recording) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &span{name: name, start: trace.NewSpanStartConfig(options...), to: t.to}
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span
	name   string
	start  trace.SpanConfig
	to     *recorder
	status codes.Code
	err    error
}

func (s *span) SetStatus(c codes.Code, _ string)              { s.status = c }
func (s *span) RecordError(err error, _ ...trace.EventOption) { s.err = err }
func (s *span) End(...trace.SpanEndOption) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	s.to.ended = append(s.to.ended, s)
}

func (s *span) attribute(key attribute.Key) attribute.Value {
	set := attribute.NewSet(s.start.Attributes()...)
	v, _ := set.Value(key)
	return v
}

func TestEachAttemptIsASpanLinkedToTheProducer(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.retryEvery(time.Millisecond, 5)
		producer := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5}, TraceFlags: trace.FlagsSampled,
		})
		m := client.Message(1)
		m.MessageID, m.Headers = "traced", map[string]string{}
		propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(t.Context(), producer), propagation.MapCarrier(m.Headers))
		_, err := b.db.Commit(t.Context(), b.lane.Partition, client.Enqueue("jobs", m))
		check(t, err)

		failed := errors.New("not yet")
		spans := &recorder{}
		r := b.queue(func(ctx context.Context, _ *worker.Tx, m *worker.Message) error {
			if s, ok := trace.SpanFromContext(ctx).(*span); !ok || s.to != spans {
				t.Error("the handler's context does not carry the span")
			}
			if m.Attempt == 1 {
				return failed
			}
			return nil
		}, worker.Options{Tracing: spans})
		b.until("it is handled", b.emptied)
		check(t, r.end())
		if len(spans.ended) != 2 {
			t.Fatalf("%d spans", len(spans.ended))
		}
		for i, s := range spans.ended {
			links := s.start.Links()
			if len(links) != 1 || !links[0].SpanContext.Equal(producer.WithRemote(true)) || !s.start.NewRoot() {
				t.Errorf("span %d has the links %v", i, links)
			}
			if s.name != "process jobs" || s.start.SpanKind() != trace.SpanKindConsumer || s.attribute("messaging.message.id").AsString() != "traced" ||
				s.attribute("keyload.attempt").AsInt64() != int64(i+1) {
				t.Errorf("span %d: %+v", i, s)
			}
			if bad := i == 0; bad != (s.status == codes.Error) || bad != errors.Is(s.err, failed) {
				t.Errorf("span %d: status %v, error %v", i, s.status, s.err)
			}
		}
	})
}

func TestASpanOfAGroupNamesItAndOneWithoutProducerHasNoLink(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		g := b.group("mail", api.GroupPolicy{})
		b.publish(1)
		spans := &recorder{}
		r := b.members(g, func(context.Context, *worker.Tx, *worker.Event) error { return nil }, worker.Options{Tracing: spans})
		b.until("it is handled", b.reached(g, 1))
		check(t, r.end())
		if len(spans.ended) != 1 {
			t.Fatalf("%d spans", len(spans.ended))
		}
		s := spans.ended[0]
		if s.name != "process news" || s.attribute("messaging.consumer.group.name").AsString() != "mail" || len(s.start.Links()) != 0 || s.status != codes.Unset {
			t.Errorf("%+v", s)
		}
	})
}
