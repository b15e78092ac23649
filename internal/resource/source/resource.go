package source

import (
	"errors"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/table"
)

var errMissing = errors.New("the event is missing")

// Resource is what this package brings: the rows of topics and streams and their
// upkeep. The operations on them are those of packages stream and topic.
func Resource() op.Resource {
	return op.Resource{
		Name:   "source",
		Tables: []table.Info{events.Info(), identities.Info(), heads.Info(), purgedIDs.Info(), sweeps.Info()},
		Dues: []op.Due{
			{Kind: table.DuePurge, Apply: removePurged},
			{Kind: table.DuePurgedIDs, Apply: forgetIDs},
			{Kind: table.DueAge, Apply: applyAge},
		},
		Check:   check,
		Kinds:   []api.ResourceKind{api.KindTopic, api.KindStreamSet},
		Purge:   remove,
		Changed: ageChanged,
	}
}
