package queue

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyload/keyload/api"
)

func drawMessage(t *rapid.T) *message {
	n := func(name string) uint64 { return rapid.Uint64Range(0, 1<<63-1).Draw(t, name) }
	at := func(name string) int64 { return rapid.Int64Range(0, int64(api.MaxTime)).Draw(t, name) }
	text := func(name string) string { return rapid.StringN(0, 20, 256).Draw(t, name) }
	m := &message{
		State: state(rapid.IntRange(int(scheduled), int(cancelled)).Draw(t, "state")), Priority: uint8(rapid.IntRange(0, 9).Draw(t, "priority")),
		StateVersion: n("version"), Generation: n("generation"), Seq: n("seq"), EnqueuedAt: at("enqueued"),
		PayloadBytes: n("payload"), ContentBytes: n("content"), Charge: n("charge"), ReadySeq: n("ready"), LeaseVersion: n("lease"),
		Attempts: n("attempts"), Failures: n("failures"), LeaseLosses: n("losses"), NotBefore: at("notBefore"), ExpiresAt: at("expires"),
		MaxAttempts: n("max"), FinishedAt: at("finished"), Redrives: n("redrives"),
		OrderingKey: text("ordering"), FairnessKey: text("fairness"), LastFailure: text("failure"),
	}
	copy(m.Digest[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "digest"))
	if m.State == leased {
		m.Lease = lease{at("until"), at("first"), n("batch"), n("index"), n("size"), n("epoch"), text("owner"), text("session")}
	}
	return m
}

func TestAMessageRecordReadsAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		b := encodeMessage(nil, m)
		var got message
		if err := decodeMessage(b, &got); err != nil || got != *m {
			t.Fatalf("read %+v, %v; want %+v", got, err, m)
		}
		for i := range b {
			if err := decodeMessage(b[:i], new(message)); err == nil {
				t.Fatalf("%d of %d bytes are a record", i, len(b))
			}
		}
	})
}

func TestAFreshMessageTakesFewBytes(t *testing.T) {
	m := &message{
		State: ready, Priority: 4, StateVersion: 1, Generation: 1, Seq: 1_000_000, ReadySeq: 1_000_000, EnqueuedAt: start,
		PayloadBytes: 256, ContentBytes: 256, Charge: 500,
	}
	if n := len(encodeMessage(nil, m)); n > 48 {
		t.Errorf("the record takes %d bytes", n)
	}
}

func TestAHeadRecordReadsAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func() int64 { return rapid.Int64Range(0, 1<<62).Draw(t, "n") }
		h := head{Seq: uint64(n()), ReadySeq: uint64(n()), Batch: uint64(n()), FinishedSeq: uint64(n()), Armed: n()}
		for s := scheduled; s < states; s++ {
			h.Counts[s] = n()
		}
		h.StoredBytes, h.InFlightBytes, h.DeadBytes, h.ExpiringRows, h.FinishedRows = n(), n(), n(), n(), n()
		h.First = firstInstants{n(), n(), n(), n()}
		for _, v := range h.Totals.fields() {
			*v = n()
		}
		for p := range h.Ready {
			if rapid.Bool().Draw(t, "used") {
				h.Ready[p] = readyRange{1 + n(), uint64(n())}
			}
		}
		var got head
		if err := decodeHead(encodeHead(nil, &h), &got); err != nil || got != h {
			t.Fatalf("read %+v, %v; want %+v", got, err, h)
		}
	})
}

func TestABodyRecordReadsAsItWasWrittenWithItsHeadersSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &api.Message{Headers: rapid.MapOfN(rapid.String(), rapid.String(), 0, 5).Draw(t, "headers"), ContentType: rapid.String().Draw(t, "type")}
		if rapid.Bool().Draw(t, "json") {
			m.Payload = api.Of(rapid.String().Draw(t, "payload"))
		} else {
			m.PayloadBase64 = rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "bytes")
		}
		b := bodyOf(m)
		var got body
		record := encodeBody(nil, &b)
		if err := decodeBody(record, &got); err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("read %+v, %v; want %+v", got, err, b)
		}
		if len(m.Headers) > 0 && !reflect.DeepEqual(got.headers(), m.Headers) {
			t.Fatalf("headers %v, want %v", got.headers(), m.Headers)
		}
		again := bodyOf(m)
		if !bytes.Equal(encodeBody(nil, &again), record) {
			t.Fatalf("equal messages have different records")
		}
	})
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte{1, 2, 4, 0})
	f.Add(encodeMessage(nil, &message{State: leased, Lease: lease{Until: 5, First: 3, Batch: 1, Size: 1, Owner: "w"}}))
	f.Add(encodeHead(nil, &head{Seq: 7}))
	f.Add(encodeBody(nil, &body{JSON: true, Payload: []byte("1"), Headers: []header{{"a", "b"}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		if decodeMessage(b, &m) == nil {
			var again message
			if err := decodeMessage(encodeMessage(nil, &m), &again); err != nil || again != m {
				t.Errorf("%+v reads again as %+v, %v", m, again, err)
			}
		}
		_ = decodeHead(b, new(head))
		_ = decodeBody(b, new(body))
		_ = decodeBatch(b, new(batch))
		_, _ = readClaims(b)
	})
}
