package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// The same receives, repeated on every way there is to the store, have one answer.
func TestReceivesAcrossLanesAnswerTheSameOnEverySurface(t *testing.T) {
	b := newBed(t)
	c := b.client(b.server.URL())
	for _, q := range []string{"first", "last"} {
		_, err := c.ConfigureResource(t.Context(), &api.ResourcesConfigureRequest{Name: q, Kind: api.KindQueue})
		check(t, err)
		_, err = c.Commit(t.Context(), home, client.Enqueue(q, client.Message(q)))
		check(t, err)
	}
	req := &api.QueuesReceiveAcrossLanesRequest{RequestID: api.NewCommandID(), Requests: []api.QueuesReceiveRequest{
		{Lane: client.Lane(home, "first")}, {Lane: client.Lane(home, "missing")}, {Lane: client.Lane(home, "last")},
	}}
	want, err := c.ReceiveAcrossLanes(t.Context(), req)
	check(t, err)
	for i, status := range []api.PartStatus{api.PartCommitted, api.PartRejected, api.PartCommitted} {
		o := want.Outcomes[i]
		if o.Status != status || o.RequestID != api.PartID(req.RequestID, i) || (o.Result != nil) == (o.Error != nil) || req.Requests[i].RequestID != "" {
			t.Fatalf("outcome %d is %+v", i, o)
		}
	}
	if want.Outcomes[1].Error.Code != fault.NotFound || len(want.Outcomes[2].Result.Deliveries) != 1 {
		t.Fatalf("got %+v", want)
	}
	asked := *req
	asked.Requests = append([]api.QueuesReceiveRequest(nil), req.Requests...)
	asked.NameParts()
	for name, ask := range map[string]func() (*api.QueuesReceiveAcrossLanesResponse, error){
		"a session": func() (*api.QueuesReceiveAcrossLanesResponse, error) { return c.ReceiveAcrossLanes(t.Context(), req) },
		"CBOR on HTTP": func() (*api.QueuesReceiveAcrossLanesResponse, error) {
			return b.client(b.server.URL(), client.HTTPOnly()).ReceiveAcrossLanes(t.Context(), req)
		},
		"embedded": func() (*api.QueuesReceiveAcrossLanesResponse, error) {
			return b.db.As("default", "admin").ReceiveAcrossLanes(t.Context(), req)
		},
		"JSON on HTTP": func() (*api.QueuesReceiveAcrossLanesResponse, error) { return postJSON(b, &asked) },
	} {
		got, err := ask()
		check(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("over %s: %+v, want %+v", name, got, want)
		}
	}
}

func postJSON(b *bed, r *api.QueuesReceiveAcrossLanesRequest) (*api.QueuesReceiveAcrossLanesResponse, error) {
	body, err := wire.EncodeJSON(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.server.URL()+"/v1/queues/receive-across-lanes", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.key)
	req.Header.Set("Connection", "close")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, %.300s, %w", resp.StatusCode, answer, err)
	}
	out := &api.QueuesReceiveAcrossLanesResponse{}
	return out, wire.ReadJSON(answer, out)
}
