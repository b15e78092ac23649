package work

import (
	"time"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
	"github.com/keyload/keyload/fault"
)

// commit changes the caller's own partition.
func (c *caller) commit(m ...api.Mutation) *api.CommandsCommitResponse {
	return send(c, api.CommandsCommit, &api.CommandsCommitRequest{Partition: c.own(), Mutations: m})
}

// ownQueue lets messages of the caller's own lane wait, move and end, or lets them
// fail and come back.
func (c *caller) ownQueue() {
	if c.chance(50) {
		c.waitInVain()
	} else {
		c.failAndComeBack()
	}
}

func (c *caller) waitInVain() {
	id, far := c.name("w"), time.Now().Add(time.Hour)
	r := c.commit(client.Enqueue("jobs", api.Message{MessageID: id, Payload: api.Of(id), NotBefore: api.TimeOf(far)}))
	if r == nil {
		return
	}
	r = c.commit(api.Mutation{RescheduleMessage: &api.RescheduleMessage{
		Queue: "jobs", MessageID: id, ExpectedStateVersion: r.Results[0].StateVersion, ExpectedDeliveryGeneration: 1, NotBefore: api.TimeOf(far.Add(time.Hour)),
	}})
	if r == nil || c.chance(50) {
		return
	}
	c.commit(api.Mutation{CancelMessage: &api.CancelMessage{
		Queue: "jobs", MessageID: id, ExpectedStateVersion: r.Results[0].StateVersion, ExpectedDeliveryGeneration: 1,
	}})
}

func (c *caller) failAndComeBack() {
	id, lane := c.name("f"), api.LaneRef{Partition: c.own(), Queue: "jobs"}
	if c.commit(client.Enqueue("jobs", api.Message{MessageID: id, Payload: api.Of(id)})) == nil {
		return
	}
	end := func(item api.CompleteItem) uint64 { // of the message; what earlier lives left is acknowledged
		got := send(c, api.QueuesReceive, &api.QueuesReceiveRequest{Lane: lane, MaxMessages: 100, LeaseSeconds: 5})
		if got == nil {
			return 0
		}
		req, mine := &api.QueuesCompleteRequest{Lane: lane}, -1
		for i, d := range got.Deliveries {
			own := api.CompleteItem{Token: d.Token, Action: api.ActionAck}
			if d.MessageID == id {
				own, mine = item, i
				own.Token = d.Token
			}
			req.Items = append(req.Items, own)
		}
		if len(req.Items) == 0 {
			return 0
		}
		done := send(c, api.QueuesComplete, req)
		if done == nil || mine < 0 || done.Results[mine].Error != nil {
			return 0
		}
		return done.Results[mine].StateVersion
	}
	version := end(api.CompleteItem{Action: api.ActionNack, Terminal: true, Failure: "poison"})
	switch {
	case version == 0:
		return
	case c.chance(50):
		send(c, api.QueuesRedrive, &api.QueuesRedriveRequest{Lane: lane, MessageID: id})
	default:
		c.commit(api.Mutation{RedriveMessage: &api.RedriveMessage{Queue: "jobs", MessageID: id, ExpectedStateVersion: version, ExpectedDeliveryGeneration: 1}})
	}
	end(api.CompleteItem{Action: api.ActionAck})
}

// ownResource makes, changes, pauses and deletes the caller's own queue.
func (c *caller) ownResource() {
	name := "queue-" + ownPartition(c.number).Key
	switch {
	case c.resource == nil || c.chance(60):
		req := &api.ResourcesConfigureRequest{Name: name, Kind: api.KindQueue, Queue: &api.QueuePolicy{MaxAttempts: 1 + int64(c.rng.IntN(100))}, Paused: c.chance(30)}
		if c.resource != nil {
			req.ExpectedVersion = c.resource.Version
		}
		if r := send(c, api.ResourcesConfigure, req); r != nil {
			c.resource = &r.Resource
			c.commit(client.Enqueue(name, api.Message{MessageID: c.name("q"), Payload: api.JSON("1")}))
		}
	default:
		if r := send(c, api.ResourcesDelete, &api.ResourcesDeleteRequest{Name: name, Purge: c.chance(70)}, fault.Conflict); r != nil {
			c.resource = nil
		}
	}
}

// ownPrincipal changes the caller's own principal and its keys.
func (c *caller) ownPrincipal() {
	id := "principal-" + ownPartition(c.number).Key
	switch n := c.rng.IntN(3); {
	case n == 0 || c.epoch == 0:
		r := send(c, api.PrincipalsConfigure, &api.PrincipalsConfigureRequest{Principal: api.Principal{
			ID: id, Tenant: "default", PolicyEpoch: c.epoch + 1, Roles: []api.Role{[]api.Role{api.RoleReader, api.RoleWorker, api.RoleProducer}[c.rng.IntN(3)]},
		}})
		if r != nil {
			c.epoch = r.Principal.PolicyEpoch
		}
	case n == 1 || len(c.keys) == 0:
		if r := send(c, api.APIKeysCreate, &api.APIKeysCreateRequest{PrincipalID: id}); r != nil {
			c.keys = append(c.keys, r.KeyID)
		}
	default:
		if send(c, api.APIKeysRevoke, &api.APIKeysRevokeRequest{KeyID: c.keys[0]}) != nil {
			c.keys = c.keys[1:]
		}
	}
}
