package group

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/kv"
)

// Whatever part of an update or a seek was on the disk when the power went: the
// group is at its old generation with its window, or at the new one without it,
// to the byte.
func TestAPowerLossLeavesAnUpdateOrASeekWhollyOrNotAtAll(t *testing.T) {
	for name, request := range map[string]func(b *bed) api.CommandRequest{
		"update": func(b *bed) api.CommandRequest {
			return &api.SubscriptionsConfigureRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: b.generation(), Definition: typed("b")}
		},
		"seek": func(b *bed) api.CommandRequest {
			return &api.SubscriptionsSeekRequest{CommandID: b.id(), Group: b.ref("g"), ExpectedGeneration: b.generation(), To: api.SeekPosition, Position: 4}
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, done := 0, 0
			for _, synced := range []bool{false, true} {
				for percent := 0; percent <= 100; percent += 5 {
					before, after, found := lostAt(t, request, synced, percent)
					switch {
					case maps.Equal(found, before):
						old++
					case maps.Equal(found, after):
						done++
					default:
						t.Errorf("synced %v, with %d percent of the unsynced bytes: the group is neither as before nor as after", synced, percent)
					}
					if synced && !maps.Equal(found, after) {
						t.Errorf("what was synced is gone (%d percent)", percent)
					}
				}
			}
			if old == 0 || done <= 21 {
				t.Errorf("%d trials found the old group and %d the new one: the test shows too little", old, done)
			}
		})
	}
}

// watched is a disk that tells when its log is about to be synced, and when it was.
type watched struct {
	*vfs.MemFS
	sync func(after bool)
}

func (w *watched) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return w.file(name)(w.MemFS.Create(name, c))
}

func (w *watched) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return w.file(to)(w.MemFS.ReuseForWrite(from, to, c))
}

func (w *watched) file(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil || !strings.HasSuffix(name, ".log") {
			return f, err
		}
		return &watchedLog{f, w}, nil
	}
}

type watchedLog struct {
	vfs.File
	w *watched
}

func (l *watchedLog) Sync() error     { return l.tell(l.File.Sync) }
func (l *watchedLog) SyncData() error { return l.tell(l.File.SyncData) }

func (l *watchedLog) tell(sync func() error) error {
	l.w.sync(false)
	err := sync()
	l.w.sync(true)
	return err
}

// lostAt carries a command out on one bed, and on another loses the power while it
// is on its way to the disk. It answers the rows before and after it, and those
// that were found.
func lostAt(t *testing.T, request func(b *bed) api.CommandRequest, synced bool, percent int) (before, after, found map[string]string) {
	t.Helper()
	for _, lose := range []bool{false, true} {
		b := emptyBed(t, crashable(), true)
		b.create("g", api.GroupDefinition{})
		b.kinds(20, "a", "b")
		d := b.receive(12).Deliveries
		b.ack(d[1], d[2], d[4], d[7])
		b.nack(d[5], 60_000)
		b.pause()
		req := request(b)
		api.ApplyDefaults(req)
		o := api.SubscriptionsConfigure.Operation
		if _, ok := req.(*api.SubscriptionsSeekRequest); ok {
			o = api.SubscriptionsSeek.Operation
		}
		if !lose {
			before = b.rows()
			if out := b.entry(b.command(o, req)); out.Err != nil {
				t.Fatal(out.Err)
			}
			after = b.rows()
			continue
		}
		cmd := b.command(o, req)
		b.close()
		var left *vfs.MemFS
		disk := &watched{b.fs, func(bool) {}}
		var err error
		b.store, err = kv.Open("db", kv.Options{FS: disk, CacheBytes: 1 << 20})
		b.must(err)
		b.machine()
		disk.sync = func(after bool) {
			if left == nil && after == synced {
				left = b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(percent), 3))})
			}
		}
		b.entry(cmd)
		b.close()
		b.fs = left
		b.open()
		found = b.rows()
	}
	return before, after, found
}
