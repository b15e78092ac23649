package httpgw_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/gateway/httpgw"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/wire"
)

// peer is a client written from the protocol's description alone.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func (b *bed) dial(key string) *peer {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	check(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	check(b.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = fmt.Fprintf(conn, "GET /v1/session HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: keyload-session/1\r\n\r\n", key)
	check(b.t, err)
	p := &peer{b.t, conn, bufio.NewReader(conn)}
	resp, err := http.ReadResponse(p.in, nil)
	check(b.t, err)
	if resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "keyload-session/1" || resp.Header.Get("Keyload-Session-Calls") == "" {
		b.t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return p
}

// write sends one frame.
func (p *peer) write(kind byte, id uint32, body []byte) {
	p.t.Helper()
	f := binary.BigEndian.AppendUint32(nil, uint32(5+len(body)))
	f = append(f, kind)
	f = binary.BigEndian.AppendUint32(f, id)
	_, err := p.conn.Write(append(f, body...))
	check(p.t, err)
}

// call sends one call.
func (p *peer) call(id uint32, o *api.Operation, req any) {
	p.t.Helper()
	api.ApplyDefaults(req)
	b, err := wire.EncodeCBOR(req)
	check(p.t, err)
	p.write(1, id, append(binary.BigEndian.AppendUint16(nil, o.Number), b...))
}

// read reads one frame.
func (p *peer) read() (kind byte, id uint32, body []byte, err error) {
	var h [9]byte
	if _, err := io.ReadFull(p.in, h[:]); err != nil {
		return 0, 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(h[:])-5)
	_, err = io.ReadFull(p.in, body)
	return h[4], binary.BigEndian.Uint32(h[5:]), body, err
}

// result reads one answer into resp.
func (p *peer) result(wantID uint32, resp any) *fault.Error {
	p.t.Helper()
	kind, id, body, err := p.read()
	check(p.t, err)
	if id != wantID {
		p.t.Fatalf("answer to call %d (kind %d), want %d", id, kind, wantID)
	}
	switch kind {
	case 3:
		check(p.t, wire.ReadCBOR(body, resp))
		return nil
	case 4:
		f := &fault.Error{}
		check(p.t, wire.ReadCBOR(body, f))
		return f
	}
	p.t.Fatalf("frame of kind %d", kind)
	return nil
}

func jobs() api.LaneRef { return api.LaneRef{Queue: "jobs"} }

func TestCallsOfASessionAreAnsweredAsTheyComplete(t *testing.T) {
	b := newBed(t)
	p := b.dial(b.key)
	p.call(1, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{RequestID: someID, Lane: jobs(), WaitMillis: 20_000})
	b.inFlight(1)
	p.call(2, api.ResourcesList.Operation, &api.ResourcesListRequest{})
	list := &api.ResourcesListResponse{}
	if f := p.result(2, list); f != nil || len(list.Resources) != 5 {
		t.Fatalf("%+v %v", list, f)
	}
	p.call(3, api.CommandsCommit.Operation, &api.CommandsCommitRequest{
		CommandID: api.NewCommandID(), Mutations: []api.Mutation{keyload.Enqueue("jobs", keyload.Message(1))},
	})
	got := map[uint32]byte{}
	for range 2 {
		kind, id, _, err := p.read()
		check(t, err)
		got[id] = kind
	}
	if got[1] != 3 || got[3] != 3 {
		t.Errorf("answers %v", got)
	}
}

func TestACancelledCallEndsAndClaimsNothing(t *testing.T) {
	b := newBed(t)
	p := b.dial(b.key)
	p.call(7, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{RequestID: someID, Lane: jobs(), WaitMillis: 20_000})
	b.inFlight(1)
	p.write(2, 7, nil)
	if f := p.result(7, nil); f == nil || f.Code != fault.Cancelled {
		t.Errorf("%v", f)
	}
	_, err := b.db.Commit(t.Context(), api.PartitionRef{}, keyload.Enqueue("jobs", keyload.Message(1)))
	check(t, err)
	status, err := b.db.QueueStatus(t.Context(), jobs())
	if err != nil || status.Counts.Ready != 1 {
		t.Errorf("%+v, %v", status, err)
	}
	p.write(2, 7, nil)  // a call that is answered
	p.write(2, 99, nil) // a call that never was
	p.write(5, 0, nil)
	if kind, _, _, err := p.read(); kind != 6 || err != nil {
		t.Errorf("a ping is answered with kind %d, %v", kind, err)
	}
}

func TestALostConnectionClaimsNothing(t *testing.T) {
	b := newBed(t)
	p := b.dial(b.key)
	p.call(7, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{RequestID: someID, Lane: jobs(), WaitMillis: 20_000})
	gone := b.inFlight(1)
	check(t, p.conn.Close())
	gone()
	_, err := b.db.Commit(t.Context(), api.PartitionRef{}, keyload.Enqueue("jobs", keyload.Message(1)))
	check(t, err)
	status, err := b.db.QueueStatus(t.Context(), jobs())
	if err != nil || status.Counts.Ready != 1 {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestARevokedKeyStopsWorkingOnAnOpenSession(t *testing.T) {
	b := newBed(t)
	key, id := b.newKey(api.Principal{ID: "worker", Roles: []api.Role{api.RoleWorker}, PolicyEpoch: 1})
	p := b.dial(key)
	read := &api.EventsReadRequest{Source: api.SourceRef{Resource: "news"}}
	p.call(1, api.EventsRead.Operation, read)
	if f := p.result(1, &api.EventsReadResponse{}); f != nil {
		t.Fatal(f)
	}
	p.call(2, api.ResourcesList.Operation, &api.ResourcesListRequest{})
	if f := p.result(2, nil); f == nil || f.Code != fault.PermissionDenied {
		t.Errorf("a worker lists the catalog: %v", f)
	}
	_, err := b.db.RevokeAPIKey(t.Context(), &api.APIKeysRevokeRequest{KeyID: id})
	check(t, err)
	p.call(3, api.EventsRead.Operation, read)
	if f := p.result(3, nil); f == nil || f.Code != fault.Unauthenticated {
		t.Errorf("after the key was revoked: %v", f)
	}
}

func TestASessionRefusesWhatHTTPRefusesInTheSameWords(t *testing.T) {
	b := newBed(t)
	p := b.dial(b.key)
	for i, body := range []string{"", "\x80", "\xa1\x18\x63\x01", "\xa1\x01\xc0\x60", "\xa0"} {
		want := &fault.Error{}
		a := b.send(http.MethodPost, "/v1/commands/commit", strings.NewReader(body), "Content-Type", "application/cbor")
		check(t, wire.ReadCBOR(a.body, want))
		p.write(1, uint32(i), append([]byte{0, 1}, body...))
		if got := p.result(uint32(i), nil); got == nil || got.Error() != want.Error() || len(got.Violations) != len(want.Violations) {
			t.Errorf("%x: %v, over HTTP %v", body, got, want)
		}
	}
	p.write(1, 50, []byte{0xff, 0xfe, 0xa0})
	if f := p.result(50, nil); f == nil || f.Code != fault.NotFound || f.Reason != "unknown_operation" {
		t.Errorf("%v", f)
	}
}

func TestARequestOverASessionMayHaveTheLimitAndNotOneByteMore(t *testing.T) {
	b := newBed(t)
	p := b.dial(b.key)
	for i, c := range []struct {
		size   int
		reason string
	}{
		{limits.BodyBytes - 1, "malformed_cbor"}, {limits.BodyBytes, "malformed_cbor"}, {limits.BodyBytes + 1, "body_too_large"},
	} {
		p.write(1, uint32(i), append([]byte{0, 1}, make([]byte, c.size)...))
		if f := p.result(uint32(i), nil); f == nil || f.Code != fault.Validation || f.Reason != c.reason {
			t.Errorf("%d bytes: %v", c.size, f)
		}
	}
	p.call(9, api.ResourcesList.Operation, &api.ResourcesListRequest{})
	if f := p.result(9, &api.ResourcesListResponse{}); f != nil {
		t.Errorf("the session does not go on: %v", f)
	}
}

func TestASessionTakesSoManyCallsAndRefusesOneMore(t *testing.T) {
	const most = 3
	b := newBed(t, func(o *httpgw.Options) { o.SessionCalls = most })
	p := b.dial(b.key)
	for id := range uint32(most) {
		p.call(id, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{RequestID: api.NewCommandID(), Lane: jobs(), WaitMillis: 20_000})
	}
	b.inFlight(most)
	p.call(50, api.ResourcesList.Operation, &api.ResourcesListRequest{})
	f := p.result(50, nil)
	if f == nil || f.Code != fault.ResourceExhausted || f.Reason != "session_calls" || f.Retry != fault.RetrySameID || f.Facts["limit"] != "3" {
		t.Errorf("%v", f)
	}
	p.write(2, 0, nil) // one ends
	if f := p.result(0, nil); f == nil || f.Code != fault.Cancelled {
		t.Errorf("%v", f)
	}
	p.call(51, api.ResourcesList.Operation, &api.ResourcesListRequest{})
	if f := p.result(51, &api.ResourcesListResponse{}); f != nil {
		t.Errorf("below the bound: %v", f)
	}
}

func TestABrokenProtocolEndsTheSessionWithAReason(t *testing.T) {
	b := newBed(t)
	for name, bytes := range map[string]string{
		"unknown kind":             "\x00\x00\x00\x05\x09\x00\x00\x00\x01",
		"kind of the server":       "\x00\x00\x00\x05\x03\x00\x00\x00\x01",
		"length zero":              "\x00\x00\x00\x00\x01\x00\x00\x00\x01",
		"length of 4 GiB":          "\xff\xff\xff\xff\x01\x00\x00\x00\x01",
		"call without operation":   "\x00\x00\x00\x06\x01\x00\x00\x00\x01\x00",
		"not frames":               "GET / HTTP/1.1\r\n\r\n",
		"call id that is in use":   "",
		"end of the data in frame": "\x00\x00\x00\x50\x01\x00\x00\x00\x01\x00\x01",
	} {
		t.Run(name, func(t *testing.T) {
			p := b.dial(b.key)
			if name == "call id that is in use" {
				for range 2 {
					p.call(1, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{RequestID: api.NewCommandID(), Lane: jobs(), WaitMillis: 20_000})
				}
			}
			_, err := io.WriteString(p.conn, bytes)
			check(t, err)
			if name == "end of the data in frame" {
				check(t, p.conn.(*net.TCPConn).CloseWrite())
			}
			kind, id, body, err := p.read()
			check(t, err)
			f := &fault.Error{}
			check(t, wire.ReadCBOR(body, f))
			if kind != byte(frame.Goodbye) || id != 0 || f.Reason != "session_protocol" {
				t.Errorf("kind %d id %d %v", kind, id, f)
			}
			if _, _, _, err := p.read(); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
}

func TestASessionIsOpenedOnlyByAnUpgradeWithAKey(t *testing.T) {
	b := newBed(t)
	a := b.send(http.MethodGet, "/v1/session", nil)
	if p := a.problem(t); a.status != 426 || a.header.Get("Upgrade") != "keyload-session/1" || p.Reason != "upgrade_required" {
		t.Errorf("%d %v %+v", a.status, a.header, p)
	}
	a = b.send(http.MethodGet, "/v1/session", nil, "Authorization", "Bearer kl_a_b", "Connection", "Upgrade", "Upgrade", "keyload-session/1")
	if p := a.problem(t); a.status != 401 || p.Code != "Unauthenticated" {
		t.Errorf("%d %+v", a.status, p)
	}
}

func TestAShutdownAnswersWhatIsInFlightAndSaysGoodbye(t *testing.T) {
	b := newBed(t)
	p := b.dial(b.key)
	p.call(1, api.QueuesReceive.Operation, &api.QueuesReceiveRequest{RequestID: someID, Lane: jobs(), WaitMillis: 20_000})
	b.inFlight(1)
	down := make(chan error, 1)
	go func() { down <- b.server.Shutdown(t.Context()) }()
	kind, _, body, err := p.read()
	check(t, err)
	f := &fault.Error{}
	check(t, wire.ReadCBOR(body, f))
	if kind != byte(frame.Goodbye) || f.Reason != "shutting_down" || f.Retry != fault.RetrySameID {
		t.Errorf("kind %d %v", kind, f)
	}
	p.call(2, api.ResourcesList.Operation, &api.ResourcesListRequest{})
	answers := map[uint32]fault.Code{}
	for range 2 {
		kind, id, body, err := p.read()
		check(t, err)
		if kind != 4 {
			t.Fatalf("kind %d", kind)
		}
		f := &fault.Error{}
		check(t, wire.ReadCBOR(body, f))
		answers[id] = f.Code
	}
	if answers[2] != fault.OwnershipLost || answers[1] != fault.Cancelled {
		t.Errorf("%v", answers)
	}
	check(t, <-down)
	if _, _, _, err := p.read(); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}
