package load

import (
	"bytes"
	"testing"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
)

// Far more is asked than a slow disk can store: memory stays bounded, refusals are
// quick and say when to come back, and those who finish work are served.
func TestBeyondCapacityMemoryStaysBoundedAndCompletionsGoOn(t *testing.T) {
	b := newBed(t)
	b.hold(b.db)
	quiet, _ := b.work(b.db, 150)
	payload := api.JSON(`"` + string(bytes.Repeat([]byte("x"), payloadBytes-2)) + `"`)
	o := &overload{}
	var busy, calls = quiet, 0
	grew := heap(func() {
		o.ask(t, asked, func(caller int) error {
			var ms []api.Mutation
			for range batch {
				ms = append(ms, keyload.Enqueue("bulk", api.Message{Payload: payload}))
			}
			_, err := b.db.Commit(t.Context(), lane(caller), ms...)
			return err
		})
		busy, calls = b.work(b.db, completions())
		o.stop.Store(true)
		o.wg.Wait()
	})
	b.judge("embedded", o, quiet, busy, calls, grew, heapBound(1))
}
