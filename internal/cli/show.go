package cli

import (
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/wire"
)

// show writes a response: for people, or with --json exactly as a server would
// answer it, on one line. Where single items of it were refused, the program
// exits with the class of the first refusal, so that a script need not read it.
func (s *session) show(response any) error {
	var err error
	if s.JSON {
		err = s.showJSON(response)
	} else {
		p := printer{w: s.streams.Out, terminal: s.streams.OutTerminal, name: s.name, subject: s.subject()}
		err = p.print(response)
	}
	if first := itemsOf(response).first(); err == nil && first != nil {
		err = &refused{first.Code}
	}
	return err
}

func (s *session) showJSON(v any) error {
	b, err := wire.EncodeJSON(v)
	if err != nil {
		return err
	}
	_, err = s.streams.Out.Write(append(b, '\n'))
	return err
}

// named adds the command id to an error that lacks it, so that the advice can
// say how to repeat the command.
func named(err error, request any) error {
	e := fault.From(err)
	c, ok := request.(api.CommandRequest)
	if e == nil || !ok || e.CommandID != "" {
		return err
	}
	own := *e
	own.CommandID = c.GetCommandID()
	return &own
}

// wordsLine is the operation's command: "queues receive".
func wordsLine(o *api.Operation) string { return strings.Join(o.Words(), " ") }
