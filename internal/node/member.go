package node

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/commitlog"
	"github.com/keyload/keyload/internal/engine"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/membership"
	"github.com/keyload/keyload/internal/peer"
	"github.com/keyload/keyload/internal/replica"
)

const (
	// journalDir and spoolDir are in the directory of a member, beside its state.
	journalDir = "journal"
	spoolDir   = "spool"
)

// member is a node of a cluster: its state, its journal, and its way to the others.
type member struct {
	o        Options
	settings cluster.Settings
	mesh     *peer.Mesh
	store    *kv.Store
	journal  *kv.Store
	log      *replica.Log
	db       *keyload.DB
	service  *membership.Service
}

// Node implements engine.Peers.
func (m *member) Node() uint64 { return m.settings.Node }

// Call implements engine.Peers.
func (m *member) Call(ctx context.Context, node uint64, kind byte, body []byte) ([]byte, error) {
	return m.mesh.Call(ctx, node, kind, body)
}

// answer answers another node.
func (m *member) answer(ctx context.Context, from uint64, kind byte, body []byte) ([]byte, error) {
	if kind == engine.CallStatus {
		return m.service.Answer()
	}
	return engine.Answer(ctx, m.db.Engine(), from, kind, body)
}

// serveMember serves a member of a cluster until ctx ends.
func serveMember(ctx context.Context, o Options, s cluster.Settings) error {
	m := &member{o: o, settings: s}
	err := m.open(ctx)
	if err == nil {
		err = serve(ctx, o, m.db, m.begin)
	}
	return errors.Join(err, m.close())
}

// open gets everything ready but the service, which tells others the URL.
func (m *member) open(ctx context.Context) (err error) {
	m.mesh, err = peer.Open(peer.Options{
		Cluster: m.settings.Cluster, Node: m.settings.Node, Listen: m.settings.Listen, Advertise: m.settings.Advertise,
		Credentials: m.settings.Credentials(), Log: m.o.Log,
	})
	if err != nil {
		return err
	}
	journal := m.o.Storage
	journal.Logger = m.o.Log
	state := journal
	journal.Inside = true // of the directory of the state
	state.NoSync, state.MustExist = true, m.settings.Bootstrap
	if m.store, err = kv.Open(m.o.Dir, state); err != nil {
		return engine.OpenFault(m.o.Dir, err)
	}
	if m.journal, err = kv.Open(filepath.Join(m.o.Dir, journalDir), journal); err != nil {
		return engine.OpenFault(filepath.Join(m.o.Dir, journalDir), err)
	}
	if err := m.join(ctx); err != nil {
		return err
	}
	m.db, err = keyload.OpenMember(m.store, keyload.Options{Durability: api.DurableQuorum, Logger: m.o.Log, Clock: m.o.Clock}, keyload.Member{
		Log: m.openLog, Peers: m, Status: membership.Handler(func() *membership.Service { return m.service }),
		MayGo: func(req any) error { return m.service.MayGo(req) }, ClockWatched: true,
	})
	return err
}

// openLog opens the replicated log.
func (m *member) openLog(cfg commitlog.Config) (commitlog.Log, error) {
	spool, err := kv.NewFiles(m.journal, filepath.Join(m.o.Dir, spoolDir))
	if err != nil {
		return nil, err
	}
	m.log, err = replica.Open(replica.Config{
		Config: cfg, Node: m.settings.Node, Journal: m.journal, Spool: spool, Transport: m.mesh,
		Found: m.settings.Bootstrap, Logger: m.o.Log,
	})
	if err != nil {
		return nil, err
	}
	m.mesh.Attach(m.log, nil) // calls are answered once the engine is there
	return m.log, nil
}

// begin tells the cluster that the node is there.
func (m *member) begin(url string) {
	address := m.settings.Advertise
	if address == "" {
		address = m.mesh.Addr()
	}
	m.service = membership.Start(membership.Config{
		Engine: m.db.Engine(), Replicas: m.log, Book: m.mesh, Peers: m,
		Self:  api.ClusterNode{NodeID: m.settings.Node, Address: address, URL: url},
		First: m.settings.Bootstrap, Clock: m.o.Clock, Logger: m.o.Log,
	})
	m.mesh.Attach(m.log, m.answer)
}

// close ends what open and begin have begun.
func (m *member) close() error {
	var errs []error
	if m.service != nil {
		m.service.Close()
	}
	if m.db != nil {
		// The engine ends calls under way while the others can still be reached.
		errs = append(errs, m.db.Engine().Close())
	}
	if m.mesh != nil {
		errs = append(errs, m.mesh.Close())
	}
	if m.db != nil {
		errs = append(errs, m.db.Close())
	} else if m.store != nil {
		errs = append(errs, m.store.Close())
	}
	if m.journal != nil {
		errs = append(errs, m.journal.Close())
	}
	return errors.Join(errs...)
}
