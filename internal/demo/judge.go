package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/keyload/keyload/api"
)

// row is one kind of thing in the comparison.
type row struct {
	what            string
	expected, found int
	lost            int // expected and not there
	repeated        int // there more often than expected
	wrong           int // there with other content, or in another place
}

// verdict is the whole comparison.
type verdict struct {
	rows     []row
	problems []string // the first of them, for people
}

// maxProblems bounds how many problems are told one by one.
const maxProblems = 20

func (v *verdict) problem(format string, args ...any) {
	if len(v.problems) < maxProblems {
		v.problems = append(v.problems, fmt.Sprintf(format, args...))
	}
}

func (v *verdict) sum() (total row) {
	for _, r := range v.rows {
		total.lost += r.lost
		total.repeated += r.repeated
		total.wrong += r.wrong
	}
	return total
}

// judge compares what was read back with what the input says must be there.
// Nothing it expects comes from the store.
func judge(input []delivery, f *found) *verdict {
	v := &verdict{}
	v.rows = append(v.rows, v.judgeRepositories(input, f)...)
	v.rows = append(v.rows,
		v.judgeHistory(input, f),
		v.judgeEvents("events on topic "+topic, "topic "+topic, f.Topic, expectedEvents(input, nil), true),
		v.judgeMessages(input, f),
		v.judgeNotified(input, f),
		v.judgeEffects(input, f),
		v.judgeTotals(input, f),
	)
	v.rows = append(v.rows, v.judgeGroups(input, f)...)
	return v
}

// count adds the difference between how often something is there and how often
// it should be.
func (v *verdict) count(r *row, got, want int, format string, args ...any) {
	switch what := fmt.Sprintf(format, args...); {
	case got < want:
		r.lost += want - got
		v.problem("%s: %d of %d lost", what, want-got, want)
	case got > want:
		r.repeated += got - want
		v.problem("%s: %d too many", what, got-want)
	}
}

// judgeRepositories looks at the documents, and at every count in them.
func (v *verdict) judgeRepositories(input []delivery, f *found) []row {
	want := map[string]map[string]int{}
	for _, d := range input {
		if want[d.repository] == nil {
			want[d.repository] = map[string]int{}
		}
		want[d.repository][d.event]++
	}
	documents := row{what: "documents of repositories", expected: len(want), found: len(f.Repositories)}
	counts := row{what: "deliveries counted in them", expected: len(input)}
	there := byID(f.Repositories)
	for _, id := range sortedKeys(want) {
		v.count(&documents, len(there[id]), 1, "document of %s", id)
		got := repositoryDocument{Repository: id}
		if len(there[id]) > 0 {
			if err := decode(there[id][0].Document, &got); err != nil {
				documents.wrong++
				v.problem("document of %s: %v", id, err)
			}
		}
		sum := 0
		for _, event := range sortedKeys(want[id], got.Events) {
			sum += got.Events[event]
			v.count(&counts, got.Events[event], want[id][event], "count of %s of %s", event, id)
		}
		counts.found += sum
		if got.Total != sum || got.Repository != id {
			counts.wrong++
			v.problem("document of %s: its total is %d, its events add up to %d", got.Repository, got.Total, sum)
		}
	}
	v.strays(&documents, there, want, "document of repository")
	return []row{documents, counts}
}

// strays finds what nothing of the input asks for.
func (v *verdict) strays(r *row, there map[string][]foundDocument, want map[string]map[string]int, what string) {
	for _, id := range sortedKeys(there) {
		if want[id] == nil {
			r.repeated += len(there[id])
			v.problem("%s %s should not be there", what, id)
		}
	}
}

// expectedEvent is an event that must be there.
type expectedEvent struct{ id, digest string }

// expectedEvents are the events of the deliveries that pass, in order.
func expectedEvents(input []delivery, pass func(*delivery) bool) []expectedEvent {
	var out []expectedEvent
	for i := range input {
		if d := &input[i]; pass == nil || pass(d) {
			out = append(out, expectedEvent{d.id, digest(d.eventType, d.payload)})
		}
	}
	return out
}

func (v *verdict) judgeHistory(input []delivery, f *found) row {
	total := row{what: "events on streams of repositories"}
	streams := map[string]bool{}
	for _, d := range input {
		streams[d.repository] = true
	}
	for _, id := range sortedKeys(streams) {
		want := expectedEvents(input, func(d *delivery) bool { return d.repository == id })
		r := v.judgeEvents("", "stream "+id, f.History[id], want, true)
		total.expected += r.expected
		total.found += r.found
		total.lost += r.lost
		total.repeated += r.repeated
		total.wrong += r.wrong
	}
	return total
}

// judgeEvents compares the events of one source: their number by content, their
// positions, and, where it is known, their order.
func (v *verdict) judgeEvents(what, where string, got []foundEvent, want []expectedEvent, ordered bool) row {
	r := row{what: what, expected: len(want), found: len(got)}
	count := map[string]int{}
	name := map[string]string{}
	for _, e := range want {
		count[e.digest]++
		name[e.digest] = e.id
	}
	have := map[string]int{}
	for i, e := range got {
		have[e.Digest]++
		if name[e.Digest] == "" {
			name[e.Digest] = e.ID + ", with content nobody sent,"
		}
		if e.Position != uint64(i+1) {
			r.wrong++
			v.problem("%s: event %d has position %d", where, i+1, e.Position)
		}
	}
	for _, d := range sortedKeys(count, have) {
		v.count(&r, have[d], count[d], "%s: %s", where, name[d])
	}
	if ordered && r.lost+r.repeated == 0 {
		for i, e := range got {
			if e.Digest != want[i].digest || e.ID != want[i].id {
				r.wrong++
				v.problem("%s: position %d holds %s instead of %s", where, e.Position, e.ID, want[i].id)
			}
		}
	}
	return r
}

func (v *verdict) judgeMessages(input []delivery, f *found) row {
	r := row{what: "messages finished in queue " + queue}
	there := map[string][]foundMessage{}
	for _, m := range f.Messages {
		there[m.ID] = append(there[m.ID], m)
		if m.State == api.StateAcked {
			r.found++
		}
	}
	for _, d := range input {
		if d.notice == nil {
			continue
		}
		r.expected++
		finished := 0
		for _, m := range there[d.id] {
			if m.State == api.StateAcked {
				finished++
			} else {
				v.problem("message %s is %s", d.id, m.State)
			}
		}
		v.count(&r, finished, 1, "message %s", d.id)
		delete(there, d.id)
	}
	for _, id := range sortedKeys(there) {
		r.repeated += len(there[id])
		v.problem("message %s should not be there", id)
	}
	return r
}

func (v *verdict) judgeNotified(input []delivery, f *found) row {
	r := row{what: "documents written by handlers", found: len(f.Notified)}
	there := byID(f.Notified)
	want := map[string]map[string]int{}
	for _, d := range input {
		if d.notice == nil {
			continue
		}
		r.expected++
		want[d.id] = map[string]int{}
		v.count(&r, len(there[d.id]), 1, "document %s in %s", d.id, notified)
		if len(there[d.id]) == 0 {
			continue
		}
		got := there[d.id][0]
		if extra := int(got.Revision) - 1; extra > 0 {
			r.repeated += extra
			v.problem("document %s in %s was written %d times", d.id, notified, got.Revision)
		}
		if !bytes.Equal(got.Document, api.Of(noticeDocument{d.repository, d.event, d.notice.text()})) {
			r.wrong++
			v.problem("document %s in %s has other content", d.id, notified)
		}
	}
	v.strays(&r, there, want, "document in "+notified)
	return r
}

func (v *verdict) judgeEffects(input []delivery, f *found) row {
	var want []expectedEvent
	for _, d := range input {
		if d.notice != nil {
			want = append(want, expectedEvent{d.id, digest(effectType, api.Of(effectPayload{d.id, d.notice.text()}))})
		}
	}
	return v.judgeEvents("events appended by handlers", "stream "+effectsStream, f.Effects, want, false)
}

func (v *verdict) judgeTotals(input []delivery, f *found) row {
	want := map[string]int{}
	for _, d := range input {
		if d.notice != nil {
			want[d.event]++
		}
	}
	if len(f.Totals) > 1 {
		v.problem("there are other documents beside the totals")
	}
	r := v.judgeCounts("messages counted by handlers", "totals", byID(f.Totals)[totalsID], want)
	if len(f.Totals) > 1 {
		r.wrong++
	}
	return r
}

// judgeCounts looks at the numbers in one document.
func (v *verdict) judgeCounts(what, where string, document []foundDocument, want map[string]int) row {
	r := row{what: what}
	got := map[string]int{}
	if len(document) == 0 {
		v.problem("the document of %s is lost", where)
	} else if err := decode(document[0].Document, &got); err != nil {
		r.wrong++
		v.problem("document of %s: %v", where, err)
	}
	for _, name := range sortedKeys(want, got) {
		r.expected += want[name]
		r.found += got[name]
		v.count(&r, got[name], want[name], "%s: count of %s", where, name)
	}
	return r
}

func byID(all []foundDocument) map[string][]foundDocument {
	out := map[string][]foundDocument{}
	for _, d := range all {
		out[d.ID] = append(out[d.ID], d)
	}
	return out
}

// decode refuses fields the demo never wrote.
func decode(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// sortedKeys are the keys of all maps, each once.
func sortedKeys[V any](all ...map[string]V) []string {
	seen := map[string]bool{}
	for _, m := range all {
		for k := range m {
			seen[k] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
