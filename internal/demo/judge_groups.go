package demo

import "github.com/keyload/keyload/api"

// judgeGroups looks at every group: what its handlers left, and how far it is.
func (v *verdict) judgeGroups(input []delivery, f *found) []row {
	var out []row
	documents := byID(f.Tallies)
	for i := range groups {
		g := &groups[i]
		var appended []expectedEvent
		counts := map[string]int{}
		for _, h := range g.work(input) {
			appended = append(appended, expectedEvent{h.id, digest(trailType, api.Of(h.payload))})
			counts[h.eventType]++
		}
		out = append(out,
			v.judgeEvents("events appended by group "+g.name, "stream "+trails+"/"+g.name, f.Groups[g.name].Trail, appended, false),
			v.judgeCounts("events counted by group "+g.name, "the tally of group "+g.name, documents[g.name], counts),
			v.judgeProgress(input, g.name, f.Groups[g.name]),
		)
		delete(documents, g.name)
	}
	for _, id := range sortedKeys(documents) {
		out[len(out)-1].wrong++
		v.problem("document %s in %s should not be there", id, tallies)
	}
	return out
}

// judgeProgress wants every position of the topic finished, and nothing left
// above the finished prefix. The topic has a position for each delivery.
func (v *verdict) judgeProgress(input []delivery, name string, g foundGroup) row {
	r := row{what: "positions finished by group " + name, expected: len(input), found: int(g.Checkpoint)}
	if r.found <= r.expected {
		v.count(&r, r.found, r.expected, "checkpoint of group %s", name)
	} else {
		r.wrong += r.found - r.expected
		v.problem("checkpoint of group %s: %d is after the last event", name, g.Checkpoint)
	}
	if g.Tail != uint64(len(input)) {
		r.wrong++
		v.problem("group %s takes %d for the last position", name, g.Tail)
	}
	if g.Runs > 0 || g.Rows > 0 {
		r.wrong += int(max(g.Runs, g.Rows))
		v.problem("group %s has %s and %s in its window left", name, many(g.Runs, "gap"), many(g.Rows, "row"))
	}
	if g.DeadLetters > 0 {
		r.wrong += int(g.DeadLetters)
		v.problem("group %s has %s", name, many(g.DeadLetters, "dead letter"))
	}
	return r
}
