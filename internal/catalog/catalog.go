package catalog

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/op"
	"github.com/keyload/keyload/internal/resource/access"
	"github.com/keyload/keyload/internal/resource/batch"
	"github.com/keyload/keyload/internal/resource/directory"
	"github.com/keyload/keyload/internal/resource/dispatch"
	"github.com/keyload/keyload/internal/resource/document"
	"github.com/keyload/keyload/internal/resource/group"
	"github.com/keyload/keyload/internal/resource/inbox"
	"github.com/keyload/keyload/internal/resource/lineage"
	"github.com/keyload/keyload/internal/resource/members"
	"github.com/keyload/keyload/internal/resource/partitions"
	"github.com/keyload/keyload/internal/resource/queue"
	"github.com/keyload/keyload/internal/resource/source"
	"github.com/keyload/keyload/internal/resource/stream"
	"github.com/keyload/keyload/internal/resource/system"
	"github.com/keyload/keyload/internal/resource/topic"
)

// Resources lists every resource package, lowest first.
func Resources() []op.Resource {
	return []op.Resource{
		partitions.Resource(),
		lineage.Resource(),
		access.Resource(),
		directory.Resource(directory.Checks{
			api.KindCollection: func(r *api.Resource) error { return document.CheckPolicy(r.Collection) },
		}),
		members.Resource(),
		dispatch.Resource(),
		document.Resource(),
		source.Resource(),
		stream.Resource(),
		topic.Resource(),
		queue.Resource(),
		inbox.Resource(),
		group.Resource(),
		batch.Resource(),
		system.Resource(),
	}
}
