package cli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/keyload/keyload/api"
)

// A flag is one flag of an operation's command: a place in the request and how
// a text becomes the value there.
type flag struct {
	name     string // without dashes
	pointer  string // JSON pointer of the place, as violations name it
	index    []int  // path of the place from the request, through pointers
	typ      reflect.Type
	tag      reflect.StructTag
	shape    shape
	required bool
	argument bool   // may be given by its place on the command line, too
	group    string // heading in the help; "" is the operation's own
	// source is set for the flags that say the kind of a source by their name.
	source api.SourceKind
}

// shape is how a flag's text is read.
type shape uint8

const (
	shapeText      shape = iota // any string kind
	shapeNumber                 // integers and pointers to them
	shapeSwitch                 // bool
	shapeOff                    // bool that is true unless the flag is given
	shapeTime                   // api.Time
	shapePartition              // api.PartitionRef in its text form
	shapeList                   // texts, separated by commas or repeated
	shapeObject                 // JSON of a struct
	shapeMap                    // JSON of an object with names of the caller's
	shapeObjects                // JSON of structs, in an array or repeated
	shapeJSON                   // any JSON value
	shapeBytes                  // bytes of a file or of the text
)

// flagsOf lists the flags of a request type. References and single structures
// are flattened, so that a lane is --queue and --partition; a policy has one
// flag for all of it, in JSON, and one for each of its numbers. What a policy has
// within it keeps its name: --retry.base-millis, --dead-letter.max-events.
//
// What a request cannot do without and is one word may be typed without its
// flag, in the order of the fields: the resource, then what is named in it. The
// resource of a source is its topic then. Nodes and shards are named by numbers.
func flagsOf(request reflect.Type) []flag {
	flags := structFlags(request, flag{}, "")
	for i := range flags {
		f := &flags[i]
		f.argument = f.source == api.SourceTopic || f.required && (f.shape == shapeText || f.isPlace()) && !f.filled()
	}
	return flags
}

// structFlags lists the flags of the fields of t, which sits where at says.
// Their names begin with prefix.
func structFlags(t reflect.Type, at flag, prefix string) []flag {
	var out []flag
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" || name == "" {
			continue // filled by the door
		}
		f := flag{
			name: prefix + kebab(name), pointer: at.pointer + "/" + name, group: at.group,
			index: append(append([]int(nil), at.index...), i), typ: sf.Type, tag: sf.Tag,
			required: !strings.Contains(options, "omit"),
		}
		// A structure within a policy has names that others have too, such as
		// maxBytes.
		out = append(out, fieldFlags(f, prefix != "" || strings.HasSuffix(t.Name(), "Policy"))...)
	}
	return out
}

// fieldFlags is one field's flags: usually f itself with its shape. The flags of
// a structure that is part of something begin with its name.
func fieldFlags(f flag, part bool) []flag {
	switch t := f.typ; {
	case f.pointer == "/requestId":
		f.name = "command-id"
	case t == reflect.TypeFor[api.SourceRef]():
		return sourceFlags(f)
	case t == reflect.TypeFor[api.PartitionRef]():
		f.shape = shapePartition
	case t == reflect.TypeFor[api.JSON]():
		f.shape = shapeJSON
	case t == reflect.TypeFor[api.Time]():
		f.shape = shapeTime
	case t == reflect.TypeFor[[]byte]():
		f.shape = shapeBytes
	case f.pointer == "/draining":
		f.name, f.shape, f.tag = "off", shapeOff, `doc:"let it lead again"`
	case t.Kind() == reflect.Bool:
		f.shape = shapeSwitch
	case t.Kind() == reflect.String:
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		f.shape = shapeList
	case t.Kind() == reflect.Slice:
		f.shape = shapeObjects
	case t.Kind() == reflect.Map:
		f.shape = shapeMap
	case t.Kind() == reflect.Struct && part:
		return structFlags(t, f, f.name+".")
	case t.Kind() == reflect.Struct:
		return structFlags(t, f, "")
	case isPolicy(t):
		inner := f
		inner.group = strings.ToUpper(f.name[:1]) + f.name[1:] + " policy:"
		parts := structFlags(t.Elem(), inner, f.name+".")
		f.shape, f.name, f.group = shapeObject, f.name+"-policy", inner.group
		return append([]flag{f}, parts...)
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		f.shape = shapeObject
	default:
		f.shape = shapeNumber
	}
	return []flag{f}
}

// isPolicy says that a structure may be set number by number.
func isPolicy(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && strings.HasSuffix(t.Elem().Name(), "Policy")
}

// sourceFlags replaces the resource and the kind of a source by --topic and
// --stream-set.
func sourceFlags(at flag) []flag {
	var out []flag
	for _, f := range structFlags(at.typ, at, "") {
		switch f.name {
		case "kind":
		case "resource":
			f.required = false // one of the two is
			topic, set := f, f
			topic.name, topic.source = "topic", api.SourceTopic
			topic.tag = `doc:"name of the topic"`
			set.name, set.source = "stream-set", api.SourceStream
			set.tag = `doc:"name of the stream set, to read one stream of it"`
			out = append(out, topic, set)
		case "generation":
			if at.pointer == "/group/source" {
				f.tag = `doc:"generation of the source; that of the group is --expected-generation" default:"1" minimum:"1"`
			}
			out = append(out, f)
		default:
			out = append(out, f)
		}
	}
	return out
}

// kebab turns a JSON name into a flag's: leaseSeconds is lease-seconds.
func kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// placeholder stands for the value in the help.
func (f *flag) placeholder() string {
	switch f.shape {
	case shapeNumber:
		return "N"
	case shapeTime:
		return "TIME"
	case shapePartition:
		return "PARTITION"
	case shapeList:
		return "LIST"
	case shapeObject, shapeMap, shapeObjects, shapeJSON:
		return "JSON"
	case shapeBytes:
		return "BYTES"
	}
	if f.tag.Get("format") == "uuid" {
		return "UUID"
	}
	return "TEXT"
}

// help is what the flag's line in the help says: the field's sentence, then
// what is allowed.
func (f *flag) help() string {
	text := f.tag.Get("doc")
	if text == "" && f.shape == shapePartition {
		text = "partition to work in"
	}
	if f.name == "command-id" && f.pointer != "/commandId" || f.name == "command-id" && strings.HasPrefix(text, "your stable") {
		text = "your stable identity of this call, to repeat it safely; made for you when absent"
	}
	var facts []string
	if e := f.tag.Get("enum"); e != "" {
		facts = append(facts, "one of "+strings.ReplaceAll(e, ",", ", "))
		if f.shape == shapeList {
			facts[0] = "of " + strings.ReplaceAll(e, ",", ", ")
		}
	}
	if d := f.tag.Get("default"); d != "" {
		facts = append(facts, "default "+d)
	}
	if f.tag.Get("maximum") != "" && f.tag.Get("minimum") != "" {
		facts = append(facts, fmt.Sprintf("%s to %s", f.tag.Get("minimum"), f.tag.Get("maximum")))
	}
	switch {
	case f.unit() != "":
		facts = append(facts, "also as 90s, 5m, 2h")
	case f.shape == shapePartition:
		facts = append(facts, "tenant/database/domain/key; default default/main/main/main")
	case f.shape == shapeTime:
		facts = append(facts, "such as 2026-01-31T12:00:00Z, +30s or +7d")
	case f.shape == shapeObject, f.shape == shapeMap, f.shape == shapeObjects, f.shape == shapeJSON:
		facts = append(facts, "JSON, @file or -")
	case f.shape == shapeBytes:
		facts = append(facts, "text, @file or -")
	}
	if f.shape == shapeObjects || f.shape == shapeList {
		facts = append(facts, "may be repeated")
	}
	if f.required && !f.filled() {
		facts = append(facts, "required")
	}
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, "; ") + ")"
	}
	return text
}

// filled says that a required field may be left out on the command line,
// because something else gives it a value.
func (f *flag) filled() bool {
	return f.shape == shapeSwitch || f.shape == shapeOff || f.shape == shapePartition || f.isCallID()
}

// isPlace says that the flag is the number of a node or a shard, which a command is
// about as others are about a name.
func (f *flag) isPlace() bool {
	return f.pointer == "/nodeId" || f.pointer == "/by" || f.pointer == "/shard"
}

// isCallID says that the flag is the identity of a command.
func (f *flag) isCallID() bool {
	return f.pointer == "/commandId" && strings.HasPrefix(f.tag.Get("doc"), "your stable") || f.pointer == "/requestId"
}

// unit is the unit in the name of a number that is a length of time.
func (f *flag) unit() string {
	switch {
	case f.shape != shapeNumber:
		return ""
	case strings.HasSuffix(f.name, "-millis"):
		return "ms"
	case strings.HasSuffix(f.name, "-seconds"):
		return "s"
	}
	return ""
}
