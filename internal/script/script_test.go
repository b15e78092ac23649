package script

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The language. A script is a list of
//
//	command [word ...]
//	body
//	----
//	what must be seen
//
// and every script begins with an empty store at t+0s. The commands are:
//
//	configure <kind> <name>       makes or changes a resource; the body holds the
//	                              other fields of resources.configure
//	principal <name> <role ...>   makes a principal of tenant "default"
//	commit                        commands.commit; the body is its mutations
//	apply <operation>             any command; the body is its request in JSON. A
//	                              composite's parts have ids "x.1", "x.2" after its "x"
//	query <operation>             any query, likewise
//	announce                      what a node says of itself when it starts; the body
//	                              is its members.join in JSON
//	advance <duration>            moves the clock; nothing else happens
//	tick [n]                      lets due work happen, at most n times; without n,
//	                              until nothing is due
//	restart                       forgets what is only in memory
//	dump [table ...]              shows the rows of tables by prefix of their name
//	mark                          remembers every row
//	diff [table ...]              what changed since mark or the last diff
//	digest                        names the digest of the state; equal states have
//	                              equal names
//	check                         verifies every invariant and shows the counts
//
// "as <name>" says who calls (the store's own principal otherwise), "id <n>"
// names the command (a new one otherwise), "id4 <n>" one whose id has no time.
// Instants are written t+<duration>. A token that was given out has the name
// token:<message>#<n>, a cursor cursor:<n>; both can be used in later bodies.
// A command's place in the log of its shard is shown as "position <n>".
//
// Every script ends with a check, and its log applied once more to an empty
// store must lead to the same rows.

// KEYLOAD_REWRITE=1 writes what is seen into the scripts. Read the difference:
// what stands there is claimed to be right.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("KEYLOAD_REWRITE") != "" {
		if err := flag.Set("rewrite", "true"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestEveryScriptSeesWhatItSays(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		b := newBed(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			b.t = t
			out := b.run(d)
			for strings.Contains(out, "\n\n") {
				out = strings.ReplaceAll(out, "\n\n", "\n")
			}
			return strings.TrimRight(out, "\n")
		})
		b.t = t
		b.sound()
		b.sameAgain()
	})
}

// run carries out one command of a script.
func (b *bed) run(d *datadriven.TestData) string {
	w := b.words(d)
	switch d.Cmd {
	case "configure":
		return b.configure(w, d.Input)
	case "principal":
		return b.principal(w)
	case "commit":
		return b.apply("commands.commit", w, b.mutations(d.Input))
	case "apply":
		return b.apply(w.take(), w, d.Input)
	case "query":
		return b.query(w.take(), w, d.Input)
	case "announce":
		return b.announce(d.Input)
	case "advance":
		return b.advance(w.take())
	case "tick":
		return b.tick(w)
	case "restart":
		b.restart()
		return ""
	case "dump":
		return lines(b.rows(w.rest), nil)
	case "mark":
		b.marked = b.rows(nil)
		return ""
	case "diff":
		return b.diff(w)
	case "digest":
		return b.digest()
	case "check":
		return b.sound()
	}
	b.t.Fatalf("%s: there is no command %q", d.Pos, d.Cmd)
	return ""
}

// words are the arguments of a command, without the two that any may have.
type words struct {
	t    *testing.T
	rest []string
	as   string
	id   string
	id4  string
}

func (b *bed) words(d *datadriven.TestData) *words {
	w := &words{t: b.t}
	for i := 0; i < len(d.CmdArgs); i++ {
		word := d.CmdArgs[i].Key
		named := map[string]*string{"as": &w.as, "id": &w.id, "id4": &w.id4}[word]
		if named == nil || i+1 == len(d.CmdArgs) {
			w.rest = append(w.rest, word)
			continue
		}
		i++
		*named = d.CmdArgs[i].Key
	}
	return w
}

// take is the next word, which must be there.
func (w *words) take() string {
	w.t.Helper()
	if len(w.rest) == 0 {
		w.t.Fatal("a word is missing")
	}
	first := w.rest[0]
	w.rest = w.rest[1:]
	return first
}

func (b *bed) advance(text string) string {
	d, err := time.ParseDuration(text)
	b.must(err)
	b.now += d.Milliseconds()
	return fmt.Sprintf("it is %s", when(b.now))
}
