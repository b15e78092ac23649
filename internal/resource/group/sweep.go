package group

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/codec"
	"github.com/keyload/keyload/internal/limits"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/leasing"
	"github.com/keyload/keyload/internal/table"
)

// sweep does what logged time has brought about: leases that ran out, then
// retries whose time has come.
func sweep(g *group, x *api.GroupExamined) error {
	lost, err := loseLeases(g, limits.ScanExpired)
	if err != nil {
		return err
	}
	due, err := promote(g, limits.ScanScheduled)
	x.Expired, x.Retries = int64(lost), int64(due)
	return err
}

// loseLeases ends leases whose deadline has come, at most budget places.
func loseLeases(g *group, budget int) (int, error) {
	at := &g.head.First.Lease
	if *at == 0 || *at > g.c.Now {
		return 0, nil
	}
	var due []timeKey
	next, rest, n := int64(0), false, 0
	err := leases.Scan(g.c.Tx, instants(g.ref, *at), func(k timeKey, v *lease) (bool, error) {
		if k.When > g.c.Now || n >= budget {
			next, rest = k.When, k.When <= g.c.Now
			return false, nil
		}
		due = append(due, k)
		n += len(v.Places)
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	n = 0
	for _, k := range due {
		l, err := g.leaseOf(&entry{Until: k.When, Batch: k.Seq})
		if err != nil {
			return n, err
		}
		for _, code := range append([]uint64(nil), l.row.Places...) {
			if code == gone {
				continue
			}
			if n == budget {
				next, rest = k.When, true
				break
			}
			n++
			if err := lose(g, placeOf(code), k); err != nil {
				return n, err
			}
		}
	}
	*at = next
	g.again = g.again || rest
	return n, nil
}

// instants is the range of an index by instant from a lower bound on.
func instants(f ref, when int64) table.Range {
	return table.Range{Prefix: f.append(nil), From: codec.AppendInt64(f.append(nil), when)}
}

// lose ends one lease that ran out, if it is the one the place is under: nothing
// is taken from a holder by a stale list. The attempt counts, and the retry policy
// says how long the place waits, from the instant the lease ended.
func lose(g *group, p place, under timeKey) error {
	e, dl, err := g.listed(p, leased)
	if err == nil && (e.Until != under.When || e.Batch != under.Seq) {
		err = &table.Damage{Table: leases.Name, Key: leases.Bytes(under), Cause: errUnlisted}
	}
	if err != nil {
		return err
	}
	e.LeaseLosses++
	g.head.Totals.LeasesLost++
	return retry(g, p, e, dl, leasing.After(under.When, leasing.Backoff(g.c, &g.policy.Retry, e.Failures+e.LeaseLosses)))
}

// promote makes places ready whose next attempt is due, at most budget.
func promote(g *group, budget int) (int, error) {
	at := &g.head.First.Wait
	if *at == 0 || *at > g.c.Now {
		return 0, nil
	}
	var due []timeKey
	next, rest := int64(0), false
	err := waits.Scan(g.c.Tx, instants(g.ref, *at), func(k timeKey, _ *table.None) (bool, error) {
		if k.When > g.c.Now || len(due) >= budget {
			next, rest = k.When, k.When <= g.c.Now
			return false, nil
		}
		due = append(due, k)
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	for _, k := range due {
		p := placeOf(k.Seq)
		e, dl, err := g.listed(p, waiting)
		if err == nil && e.NotBefore != k.When {
			err = &table.Damage{Table: waits.Name, Key: waits.Bytes(k), Cause: errUnlisted}
		}
		if err != nil {
			return 0, err
		}
		if err := g.move(p, e, ready, dl); err != nil {
			return 0, err
		}
	}
	*at = next
	g.again = g.again || rest
	return len(due), nil
}

// applyDue does what time has brought about in one group, at most budget places
// of each kind, and arms the next instant.
func applyDue(c *op.Ctx, key []byte, budget int) error {
	r := codec.NewKeyReader(key)
	n := readName(&r)
	if err := r.End(); err != nil {
		return &table.Damage{Table: table.DueRows.Name, Key: key, Cause: err}
	}
	def, err := definitions.Shared(c.Tx, n)
	if err != nil || def == nil {
		return err
	}
	res, err := directory.ByID(c.Tx, n.Source.Owner.Shard, n.Source.Owner.Resource)
	if err != nil {
		return err
	}
	g, err := openNamed(c, res, n, def)
	if err != nil {
		return err
	}
	g.head.Armed = 0
	if res == nil { // deleted for good: nothing of it happens any more
		heads.Put(c.Tx, g.ref, &g.head)
		return nil
	}
	if _, err := loseLeases(g, budget); err != nil {
		return err
	}
	if _, err := promote(g, budget); err != nil {
		return err
	}
	return g.close()
}
