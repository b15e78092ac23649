package check

import (
	"context"
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
)

// Remote checks the store of a server, shard by shard, each on a snapshot of its
// own while the server goes on. Errors are those of
// admin.check.
func Remote(ctx context.Context, d api.Doer, progress Progress) (*Report, error) {
	r := &Report{Counts: map[string]int64{}, Findings: []op.Finding{}}
	shards := int64(1)
	for shard := int64(0); shard < shards; shard++ {
		resp, err := api.Call(ctx, d, api.AdminCheck, &api.AdminCheckRequest{Shard: shard})
		if err != nil {
			return nil, err
		}
		shards = resp.Shards
		r.Incarnation, r.Format, r.Shards = resp.Incarnation, resp.Format, int(resp.Shards)-1
		r.Rows, r.Bytes, r.More = r.Rows+resp.Rows, r.Bytes+resp.Bytes, r.More+resp.MoreFindings
		for _, c := range resp.Counts {
			r.Counts[c.Name] += c.Count
		}
		for _, f := range resp.Findings {
			r.Findings = append(r.Findings, op.Finding{Invariant: f.Invariant, Where: fmt.Sprintf("shard %d: %s", shard, f.Where), Text: f.Text, Derived: f.Derived})
		}
		if progress != nil {
			progress(shardsChecked, shard+1, shards)
		}
	}
	return r, nil
}
