package group

import "github.com/keyload/keyload/internal/resource/source"

// ownKey: an ordering key is one that the event at the position has, by some policy:
// the group's may have been another one when the position was issued. An event that
// cannot be read is told by its source.
func ownKey(x *auditor, t *tally, k rowKey, e *entry) error {
	if e.Key == "" {
		return nil
	}
	b, err := source.Find(&x.Scope, t.name.Source, k.Position)
	if err != nil {
		return err
	}
	event, err := source.DecodeRecord(b)
	if err != nil || string(event.CorrelationID) == e.Key {
		return nil
	}
	found := false
	event.EachHeader(func(_, value []byte) bool {
		found = string(value[:min(len(value), maxKeyBytes)]) == e.Key
		return !found
	})
	if !found {
		x.Report("order", x.where(k.Ref), "the ordering key of position %d is none that its event has", k.Position)
	}
	return nil
}
