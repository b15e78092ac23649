package trial

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// Reply is an answer as text: every byte of the response but what is shown once
// only, or the refusal. stored says that there is a receipt, so that the same
// command answers the same again; receives and renewals only as long as their
// leases last.
func Reply(resp any, err error) (text string, stored bool) {
	if err != nil {
		f := fault.From(err)
		if f == nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%s/%s %s", f.Code, f.Reason, f.Detail), f.Recorded
	}
	stored = true
	switch r := resp.(type) {
	case *api.APIKeysCreateResponse:
		shown := *r
		shown.APIKey = ""
		resp = &shown
	case *api.QueuesReceiveResponse:
		stored = len(r.Deliveries) > 0
	case *api.SubscriptionsReceiveResponse:
		stored = len(r.Deliveries) > 0
	}
	b, err := wire.EncodeJSON(resp)
	if err != nil {
		return err.Error(), false
	}
	return string(b), stored
}
