package cli

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
)

// A subject is what a command was about, so that advice about it can be copied:
// the names that were typed, in commands that begin with keyload.
type subject struct {
	flags   []flag
	request any // nil when none was sent
	site
}

func (s *session) subject() subject { return subject{s.flags, s.request, s.site()} }

// A site is where a command worked and as whom, as far as it was typed: one that
// is suggested works on the same store, with no more rights. What the environment
// says it finds there itself, and a key is never written out.
type site struct{ dir, url, as string }

func (g *globals) site() site {
	p := site{dir: g.Dir, as: g.As}
	if url := strings.Join(g.URL, ","); g.Dir == "" && url != os.Getenv(urlVariable) {
		p.url = url
	}
	return p
}

// elsewhere refuses flags that say on which store to work, and as whom, where that is
// not asked: whoever typed one means something else by the command than it does.
func (g *globals) elsewhere(why string, flags ...string) error {
	typed := map[string]bool{
		"--url": len(g.URL) > 0 && strings.Join(g.URL, ",") != os.Getenv(urlVariable), "--dir": g.Dir != "", "--as": g.As != "",
		"--api-key": g.APIKey != "" && g.APIKey != os.Getenv(keyVariable),
	}
	for _, name := range flags {
		if typed[name] {
			return &badUsage{text: name + " cannot be given here: " + why}
		}
	}
	return nil
}

// command is a command on the store of the site.
func (p site) command(words ...string) string {
	for _, f := range [][2]string{{"--dir", p.dir}, {"--url", p.url}, {"--as", p.as}} {
		if f[1] != "" {
			words = append(words, f[0], f[1])
		}
	}
	return typedName("").command(words...)
}

// directory is the one of the site, or a word for it.
func (p site) directory() string {
	if p.dir == "" {
		return "DIR"
	}
	return p.dir
}

// fieldOf is a field of the structure that x points to.
func fieldOf[T any](x any, name string) (T, bool) {
	v := reflect.ValueOf(x)
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if f := v.Elem().FieldByName(name); f.IsValid() {
			t, ok := f.Interface().(T)
			return t, ok
		}
	}
	var none T
	return none, false
}

// onGroup is a command on the group of the request, and in capitals what it does
// not know.
func (a *subject) onGroup(verb string, more ...string) string {
	g, ok := fieldOf[api.GroupRef](a.request, "Group")
	if !ok {
		return a.onGroupOf(verb, append([]string{"TOPIC", "GROUP"}, more...))
	}
	names := []string{g.Source.Resource, g.Group}
	if g.Source.Kind == api.SourceStream {
		names = []string{"--stream-set", g.Source.Resource, "--stream-id", g.Source.StreamID, "--group", g.Group}
	}
	names = append(names, more...)
	if home, err := api.ParsePartition(""); err == nil && g.Source.Partition != home && g.Source.Partition != (api.PartitionRef{}) {
		names = append(names, "--partition", g.Source.Partition.String())
	}
	return a.onGroupOf(verb, names)
}

// onGroupOf is a command on a group, after its verb as it is given.
func (a *subject) onGroupOf(verb string, rest []string) string {
	words := append([]string{"subscriptions"}, strings.Fields(verb)...)
	return a.command(append(words, rest...)...)
}

// atGeneration is the flag of a command that needs the group's generation: the
// one that an error tells, or else the one that was expected.
func (a *subject) atGeneration(told string) []string {
	if n, ok := fieldOf[uint64](a.request, "ExpectedGeneration"); told == "" && ok && n > 0 {
		told = strconv.FormatUint(n, 10)
	}
	if told == "" {
		told = "N"
	}
	return []string{"--expected-generation", told}
}

// operationName matches the names of operations in texts of the store.
var operationName = func() *regexp.Regexp {
	var names []string
	for _, o := range api.Operations() {
		names = append(names, regexp.QuoteMeta(o.Name))
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)\b`)
}()

// runnable writes the operations that a text names as commands. Those on groups
// get the names of the request's, and the position that the answer is about.
func (a *subject) runnable(text string, position uint64) string {
	return operationName.ReplaceAllStringFunc(text, func(name string) string {
		o := api.Operations()[slices.IndexFunc(api.Operations(), func(o *api.Operation) bool { return o.Name == name })]
		if f, ok := o.Request.FieldByName("Group"); !ok || f.Type != reflect.TypeFor[api.GroupRef]() {
			return a.command(o.Words()...)
		}
		return a.onGroup(strings.Join(o.Words()[1:], " "), a.needs(o, position)...)
	})
}

// needs are the arguments and flags of an operation on a group that it cannot do
// without, apart from the group.
func (a *subject) needs(o *api.Operation, position uint64) []string {
	var places, flags []string
	for _, f := range flagsOf(o.Request) {
		switch {
		case f.name == "topic" || f.name == "group" || f.filled() || !f.required && !f.argument:
		case f.argument:
			places = append(places, strings.ToUpper(f.name))
		case f.pointer == "/expectedGeneration":
			flags = append(flags, a.atGeneration("")...)
		case f.pointer == "/position" && position > 0:
			flags = append(flags, "--"+f.name, strconv.FormatUint(position, 10))
		default:
			flags = append(flags, "--"+f.name, f.placeholder())
		}
	}
	return append(places, flags...)
}
