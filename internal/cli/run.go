package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Streams are where the program reads and writes.
type Streams struct {
	In          io.Reader
	Out, Err    io.Writer
	OutTerminal bool   // Out is a terminal
	ErrTerminal bool   // Err is one
	Program     string // as it was typed, for the commands it suggests; "" is keyload
}

// globals are the flags of every command.
type globals struct {
	URL    []string `name:"url" env:"KEYLOAD_URL" sep:"," placeholder:"URL" help:"server to talk to, or the nodes of a cluster, parted by commas or each with its own --url; http://127.0.0.1:7600 when neither this nor --dir is given"`
	APIKey string   `name:"api-key" env:"KEYLOAD_API_KEY" placeholder:"KEY" help:"who you are, to the server; better kept in the environment than typed"`
	Dir    string   `name:"dir" type:"path" placeholder:"DIR" help:"work on the store in this directory, without a server"`
	As     string   `name:"as" placeholder:"TENANT/PRINCIPAL" help:"with --dir: act as this principal instead of as root"`
	JSON   bool     `name:"json" help:"write the exact answer as one line of JSON"`
}

// program is the command line. The operations' commands are added beside it.
type program struct {
	Globals globals `embed:"" group:"Where and how:"`

	Create  createCmd  `cmd:"" group:"Daily work:" help:"Create a collection, stream set, topic or queue."`
	Put     putCmd     `cmd:"" group:"Daily work:" help:"Store a document."`
	Get     getCmd     `cmd:"" group:"Daily work:" help:"Read a document."`
	Delete  deleteCmd  `cmd:"" group:"Daily work:" help:"Delete a document."`
	Append  appendCmd  `cmd:"" group:"Daily work:" help:"Append an event to a stream."`
	Publish publishCmd `cmd:"" group:"Daily work:" help:"Publish an event to a topic."`
	Tail    tailCmd    `cmd:"" group:"Daily work:" help:"Follow a topic or a stream."`
	Enqueue enqueueCmd `cmd:"" group:"Daily work:" help:"Put a message into a queue."`
	Receive receiveCmd `cmd:"" group:"Daily work:" help:"Claim messages of a queue, or events of a group, under a lease."`
	Ack     ackCmd     `cmd:"" group:"Daily work:" help:"Finish what was received."`
	Nack    nackCmd    `cmd:"" group:"Daily work:" help:"Give what was received back as failed, to be tried again later."`
	Commit  commitCmd  `cmd:"" group:"Daily work:" help:"Commit any changes to one partition, all of them or none."`

	Init    initCmd    `cmd:"" group:"The store:" help:"Make a new store and its first API key."`
	Serve   serveCmd   `cmd:"" group:"The store:" help:"Serve a store over HTTP."`
	MCP     mcpCmd     `cmd:"" name:"mcp" group:"The store:" help:"Let an agent work with a store, on standard input and output."`
	Check   checkCmd   `cmd:"" group:"The store:" help:"Prove that a store is sound: read every row, verify every rule."`
	Backup  backupCmd  `cmd:"" group:"The store:" help:"Back up a store while it works; inspect, verify and list backups."`
	Restore restoreCmd `cmd:"" group:"The store:" help:"Make a store out of a backup; see what waits after it."`
	Version versionCmd `cmd:"" group:"The store:" help:"Say which keyload this is."`

	Demo      demoCmd      `cmd:"" group:"See it work:" help:"Do the main job on real input, kill it on the way, and prove the result."`
	DemoChild demoChildCmd `cmd:"" hidden:""`

	Bench       benchCmd       `cmd:"" group:"See it work:" help:"Measure this machine: messages a second, latency, what a message costs."`
	BenchServer benchServerCmd `cmd:"" hidden:""`
}

const description = `One durable store in which documents, event streams, topics and work queues commit together.

Begin with "keyload init --dir data", then "keyload serve --dir data"; or work on the directory without a server: "keyload create queue jobs --dir data".`

// A session is one run of one command.
type session struct {
	reader
	*globals
	ctx     context.Context
	streams Streams
	name    typedName
	flags   []flag // of its operation, to name what a refusal is about
	request any    // that was sent
	endLine func() // of progress that is shown; nil when none is
}

// Run carries out one command line and says what to exit with. It ends early
// when ctx does.
func Run(ctx context.Context, args []string, streams Streams) int {
	var p program
	ops := operations()
	exited := false
	tell := &teller{w: streams.Err, name: typedName(streams.Program)}
	parser, byWords, err := newParser(&p, ops, streams, func(int) { exited = true })
	if err != nil {
		return tell.report(err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	selected, err := parser.Parse(args)
	if onlyArea(err, args) {
		selected, err = parser.Parse(append(args, "--help"))
	}
	if exited {
		return 0 // help was asked for and printed
	}
	if err != nil {
		tell.json, tell.command = p.Globals.JSON || slices.Contains(args, "--json"), wordsOf(err)
		return tell.report(asUsage(err))
	}
	s := &session{
		reader: reader{stdin: streams.In, now: time.Now()}, globals: &p.Globals,
		ctx: ctx, streams: streams, name: tell.name,
	}
	tell.json, tell.command = s.JSON, commandWords(selected.Selected())
	if o := byWords[tell.command]; o != nil {
		s.flags = o.flags
		err = s.runOperation(o, selected.Selected().Target)
	} else {
		err = selected.Run(s)
	}
	if err != nil && ctx.Err() != nil && fault.CodeOf(err) != fault.RecoveryRequired { // that says what was left half done
		err = context.Canceled
	}
	if s.endLine != nil {
		s.endLine()
	}
	tell.subject = s.subject()
	return tell.report(err)
}

// newParser joins the fixed commands and the operations'. Its texts suggest
// commands as they would be typed here.
func newParser(p *program, ops []*operation, streams Streams, exit func(int)) (*kong.Kong, map[string]*operation, error) {
	name := typedName(streams.Program)
	options := []kong.Option{
		kong.Name(name.word()), kong.Description(name.in(description)), kong.Exit(exit), kong.Writers(streams.Out, streams.Err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 110}),
	}
	for _, b := range branches(ops) {
		options = append(options, kong.DynamicCommand(b.word, b.help(), "Every operation:", reflect.New(b.commandType()).Interface()))
	}
	parser, err := kong.New(p, options...)
	if err != nil {
		return nil, nil, err
	}
	byWords := map[string]*operation{}
	for _, o := range ops {
		byWords[wordsLine(o.op)] = o
	}
	describe(parser.Model.Node, byWords, name)
	return parser, byWords, nil
}

// onlyArea says that the command line ends with a word that needs another one.
func onlyArea(err error, args []string) bool {
	var e *kong.ParseError
	if !errors.As(err, &e) || e.Context == nil {
		return false
	}
	n := e.Context.Selected()
	return n != nil && len(n.Children) > 0 && args[len(args)-1] == n.Name
}

// asUsage marks what the parser refused as a fault of the command line.
func asUsage(err error) error {
	return &badUsage{text: err.Error()}
}

// wordsOf is the command that was being parsed when it failed.
func wordsOf(err error) string {
	var e *kong.ParseError
	if !errors.As(err, &e) || e.Context == nil {
		return ""
	}
	return commandWords(e.Context.Selected())
}

// runOperation builds the request of an operation, sends it and shows the
// answer.
func (s *session) runOperation(o *operation, target reflect.Value) error {
	in, err := o.typedIn(target)
	if err != nil {
		return err
	}
	request, err := s.build(o.op, o.flags, in)
	if err != nil {
		return err
	}
	if in.wait && s.Dir != "" {
		return &badUsage{text: "--wait asks the nodes of a cluster: give --url of one instead of --dir"}
	}
	if in.wait && o.op.Name == api.ClusterStatus.Name {
		if err := follow(s, request); err != nil {
			return err
		}
	}
	response, err := s.send(o.op, request)
	if err != nil {
		return err
	}
	if r, ok := response.(*api.ClusterStatusResponse); ok && !s.JSON {
		return showCluster(s, r)
	}
	if err := s.show(response); err != nil || !in.wait || o.op.Kind == api.Query {
		return err
	}
	return follow(s, request)
}

// send opens the store or the connection, for one call.
func (s *session) send(o *api.Operation, request any) (any, error) {
	d, closeStore, err := s.open()
	if err != nil {
		return nil, err
	}
	s.request = request
	response := reflect.New(o.Response).Interface()
	err = named(d.Do(s.ctx, o, request, response), request)
	if closeErr := closeStore(); err == nil {
		err = closeErr
	}
	return response, err
}

// call completes a request, checks it and sends it.
func call[Req, Resp any](s *session, op api.Op[Req, Resp], request *Req) (*Resp, error) {
	api.ApplyDefaults(request)
	complete, err := finish(op.Operation, request, s.flags)
	if err != nil {
		return nil, err
	}
	response, err := s.send(op.Operation, complete)
	if err != nil {
		return nil, err
	}
	return response.(*Resp), nil
}

// isTerminal says that people read what is written to a file: /dev/null is a device
// too.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Standard is the process's own streams.
func Standard() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTerminal: isTerminal(os.Stdout), ErrTerminal: isTerminal(os.Stderr),
		Program: os.Args[0],
	}
}
