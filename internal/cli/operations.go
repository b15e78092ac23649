package cli

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/keyload/keyload/api"
)

// An operation's command is a struct made for its flags, because kong makes
// commands of structs.
type operation struct {
	op    *api.Operation
	flags []flag
}

// typed is what was typed for one flag, in order.
type typed struct{ texts []string }

// Decode is for kong; it is called once for every time the flag is given.
func (t *typed) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue(ctx.Value.Name)
	if err != nil {
		return err
	}
	t.texts = append(t.texts, token.String())
	return nil
}

// toggled is a flag without a value, or with true or false after "=".
type toggled struct{ texts []string }

// IsBool is for kong: the flag needs no value.
func (t *toggled) IsBool() bool { return true }

// Decode is for kong.
func (t *toggled) Decode(ctx *kong.DecodeContext) error {
	on := true
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		var err error
		if on, err = strconv.ParseBool(ctx.Scan.Pop().String()); err != nil {
			return errors.New("must be true or false")
		}
	}
	t.texts = append(t.texts, strconv.FormatBool(on))
	return nil
}

// branch is a word of the command line, with the words that may follow or with
// the operation it names.
type branch struct {
	word     string
	children []*branch
	own      *operation
	local    []local // commands beside the operations
}

// local is a command that is no operation and stands below a word that operations
// begin with, too.
type local struct {
	word, help string
	command    reflect.Type
}

// branches puts the operations in a tree of words, in their order.
func branches(ops []*operation) []*branch {
	root := &branch{}
	for _, o := range ops {
		at := root
		for _, word := range o.op.Words() {
			at = at.child(word)
		}
		at.own = o
	}
	root.child("cluster").local = clusterCommands()
	return root.children
}

func (b *branch) child(word string) *branch {
	for _, c := range b.children {
		if c.word == word {
			return c
		}
	}
	c := &branch{word: word}
	b.children = append(b.children, c)
	return c
}

// operations lists every operation with its flags.
func operations() []*operation {
	all := api.Operations()
	out := make([]*operation, len(all))
	for i, o := range all {
		out[i] = &operation{o, flagsOf(o.Request)}
	}
	return out
}

// commandType is the struct type kong needs for a branch.
func (b *branch) commandType() reflect.Type {
	var fields []reflect.StructField
	if b.own != nil {
		for i, f := range b.own.flags {
			t := reflect.TypeFor[typed]()
			if f.shape == shapeSwitch || f.shape == shapeOff {
				t = reflect.TypeFor[toggled]()
			}
			fields = append(fields, member(i, t, f.name, b.own.inFlags(f.help()), `placeholder:`+strconv.Quote(f.placeholder())+` group:`+strconv.Quote(f.group)))
		}
		fields = append(fields, member(len(fields), reflect.TypeFor[typed](), "request",
			"the whole request as JSON, @file or - for standard input; flags given beside it win", `placeholder:"JSON"`))
		for _, f := range b.own.arguments() {
			fields = append(fields, member(len(fields), reflect.TypeFor[typed](), f.name, "the same as --"+f.name, `arg:"" optional:""`))
		}
		if b.own.waits() {
			fields = append(fields, member(len(fields), reflect.TypeFor[toggled](), "wait", b.own.waitHelp(), ""))
		}
	}
	for _, c := range b.children {
		fields = append(fields, member(len(fields), c.commandType(), c.word, c.help(), `cmd:""`))
	}
	for _, l := range b.local {
		fields = append(fields, member(len(fields), l.command, l.word, l.help, `cmd:""`))
	}
	return reflect.StructOf(fields)
}

func member(i int, t reflect.Type, name, help, more string) reflect.StructField {
	return reflect.StructField{
		Name: "F" + strconv.Itoa(i), Type: t,
		Tag: reflect.StructTag(fmt.Sprintf("name:%q help:%q %s", name, strings.ReplaceAll(help, "${", "$${"), more)),
	}
}

// help is one line on the branch.
func (b *branch) help() string {
	if b.own != nil {
		return b.own.op.Summary + "."
	}
	if s := areaHelp(b.word); s != "" {
		return s
	}
	return "Operations on " + strings.ReplaceAll(b.word, "-", " ") + "."
}

func areaHelp(area string) string {
	switch area {
	case "commands":
		return "Commit a batch of any changes; ask what became of one."
	case "documents":
		return "Read and find documents."
	case "streams":
		return "Read event streams."
	case "events":
		return "Read topics."
	case "queues":
		return "Receive and finish messages; see, explain and repair queues."
	case "subscriptions":
		return "Follow a topic or a stream as a group of workers; see, steer and repair groups."
	case "deadletters":
		return "See, redrive and discard the events a group has given up."
	case "resources":
		return "Create, change and delete collections, stream sets, topics and queues."
	case "principals":
		return "Say who may do what."
	case "api-keys":
		return "Make and revoke API keys."
	case "admin":
		return "See the state of the node."
	case "cluster":
		return "See the nodes of a cluster; add, remove and replace them; say who leads; run one on this machine."
	}
	return ""
}

// describe gives the selected commands their long help: the operation's
// paragraph and an example.
func describe(node *kong.Node, ops map[string]*operation, name typedName) {
	for _, c := range node.Children {
		if o := ops[commandWords(c)]; o != nil {
			c.Detail = o.inFlags(o.op.Doc) + "\n\nFor example:\n\n    " + strings.ReplaceAll(example(o.op.Name), "\n", "\n    ")
		}
		if commandWords(c) == "cluster" {
			c.Detail = clusterHelp
		}
		c.Detail = name.in(c.Detail)
		describe(c, ops, name)
	}
}

// camel matches names of the JSON form that cannot be plain words.
var camel = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]+)+\b`)

// inFlags writes the fields named in a text as the flags they are here.
func (o *operation) inFlags(text string) string {
	return camel.ReplaceAllStringFunc(text, func(name string) string {
		for _, f := range o.flags {
			if strings.HasSuffix(f.pointer, "/"+name) {
				return "--" + f.name
			}
		}
		return name
	})
}

// commandWords is the command without the program's name: "queues receive".
func commandWords(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}

// arguments are the flags that may be given by their place.
func (o *operation) arguments() []flag {
	return slices.DeleteFunc(slices.Clone(o.flags), func(f flag) bool { return !f.argument })
}

// typedIn collects what was typed for an operation from the struct kong filled:
// its flags, the whole request, and what was given by its place.
func (o *operation) typedIn(target reflect.Value) (given, error) {
	in := given{texts: map[string][]string{}}
	for i, f := range o.flags {
		var texts []string
		switch t := target.Field(i).Addr().Interface().(type) {
		case *typed:
			texts = t.texts
		case *toggled:
			texts = t.texts
		}
		if len(texts) > 0 {
			in.texts[f.name] = texts
		}
	}
	if t := target.Field(len(o.flags)).Interface().(typed).texts; len(t) > 0 {
		in.request = t[len(t)-1]
	}
	for i, f := range o.arguments() {
		texts := target.Field(len(o.flags) + 1 + i).Interface().(typed).texts
		if len(texts) == 0 {
			continue
		}
		if in.texts[f.name] != nil {
			return in, &badUsage{"--" + f.name + " is given twice: by its flag and by its place"}
		}
		in.texts[f.name] = texts
	}
	if o.waits() {
		t := target.Field(target.NumField() - 1).Interface().(toggled).texts
		in.wait = len(t) > 0 && t[len(t)-1] == "true"
	}
	return in, nil
}
