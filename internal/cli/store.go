package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/node"
)

type initCmd struct {
	KeyFile string `name:"key-file" type:"path" placeholder:"FILE" help:"write the administrator's key to this new file, readable by you only, instead of showing it"`
}

// Help is the example.
func (*initCmd) Help() string {
	return "Makes the store in an empty or missing directory, with an administrator whose key is shown this once. " +
		"For example:\n\n    keyload init --dir data\n    keyload init --dir data --key-file admin.key"
}

// Run makes the store.
func (c *initCmd) Run(s *session) error {
	if s.Dir == "" {
		return &badUsage{text: "--dir is required"}
	}
	if err := s.elsewhere("this makes a store here", "--url", "--api-key", "--as"); err != nil {
		return err
	}
	var file *os.File
	if c.KeyFile != "" {
		var err error
		// Made before the store, so that no store is left with a lost key.
		if file, err = os.OpenFile(c.KeyFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return &badUsage{text: "--key-file cannot be made: " + err.Error()}
		}
	}
	created, err := node.Init(s.ctx, s.Dir)
	if file != nil {
		if err == nil {
			_, err = fmt.Fprintln(file, created.APIKey)
			created.APIKey = ""
		}
		err = errors.Join(err, file.Close())
		if err != nil && created.Incarnation == "" {
			_ = os.Remove(c.KeyFile) // it is empty
		}
	}
	if err != nil {
		return err
	}
	if s.JSON {
		return s.showJSON(created)
	}
	return c.tell(s, created)
}

// tell shows people what was made and what to do next.
func (c *initCmd) tell(s *session, created node.Created) error {
	key, keep := created.APIKey, "Keep the key: it is not shown again. Next:\n  export KEYLOAD_API_KEY=..."
	if c.KeyFile != "" {
		key, keep = "in "+c.KeyFile, "Next:\n  export KEYLOAD_API_KEY=$(cat "+shellWord(c.KeyFile)+")"
	}
	_, err := fmt.Fprintf(s.streams.Out, `made a store in %s
incarnation  %s
principal    %s (administrator)
apiKey       %s

%s
  %s
`, created.Dir, created.Incarnation, created.Principal, key, keep, s.name.command("serve", "--dir", created.Dir))
	return err
}

type serveCmd struct {
	Listen     string `env:"KEYLOAD_LISTEN" placeholder:"ADDRESS" default:"127.0.0.1:7600" help:"address to listen on (default 127.0.0.1:7600); port 0 picks a free one"`
	TLSCert    string `name:"tls-cert" placeholder:"FILE" help:"certificate chain in PEM; with it the server speaks TLS only"`
	TLSKey     string `name:"tls-key" placeholder:"FILE" help:"private key of the certificate in PEM"`
	Insecure   bool   `help:"allow an address other hosts can reach without TLS: API keys then cross the network in the clear"`
	Durability string `placeholder:"LEVEL" enum:"disk,process" default:"disk" help:"what a success promises: disk (synced), or process (for tests: a power loss may lose it)"`
	MCPDirect  bool   `name:"mcp-direct" help:"list every operation as a tool to agents (at /mcp), instead of three that find, describe and call them"`
	WithInput  bool   `name:"with-input" hidden:"" help:"end when standard input does: whoever started it is gone"`
	LogLevel   string `placeholder:"LEVEL" enum:"debug,info,warn,error" default:"info" help:"least level of the log on standard error: debug, info, warn or error (default info)"`
}

// Help is the example.
func (*serveCmd) Help() string {
	return "Writes one line with its URL when it accepts requests, and a log in JSON on standard error. " +
		"An interrupt lets running calls finish first; a second one does not. For example:\n\n" +
		"    keyload serve --dir data\n    keyload serve --dir data --listen :7600 --tls-cert cert.pem --tls-key key.pem"
}

// Run serves until it is interrupted.
func (c *serveCmd) Run(s *session) error {
	if s.Dir == "" {
		return &badUsage{text: "--dir is required"}
	}
	if err := s.elsewhere("this serves a directory", "--url", "--api-key", "--as"); err != nil {
		return err
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return &badUsage{text: "--tls-cert and --tls-key belong together"}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return &badUsage{text: "--log-level " + err.Error()}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	if c.WithInput {
		go func() {
			_, _ = io.Copy(io.Discard, s.streams.In)
			cancel()
		}()
	}
	var written error
	err := node.Serve(ctx, node.Options{
		Dir: s.Dir, Listen: c.Listen, CertFile: c.TLSCert, KeyFile: c.TLSKey, Insecure: c.Insecure,
		Durability: api.Durability(c.Durability), MCPDirect: c.MCPDirect,
		Log: slog.New(slog.NewJSONHandler(s.streams.Err, &slog.HandlerOptions{Level: level})),
		Ready: func(url string) {
			line := "serving " + s.Dir + " at " + url
			if s.JSON {
				line = fmt.Sprintf(`{"url":%q}`, url)
			}
			_, written = fmt.Fprintln(s.streams.Out, line)
		},
	})
	if err == nil {
		err = written
	}
	return err
}

type versionCmd struct{}

// Run writes the version.
func (*versionCmd) Run(s *session) error {
	v := node.Version()
	if s.JSON {
		return s.showJSON(v)
	}
	_, err := fmt.Fprintln(s.streams.Out, strings.TrimSpace("keyload "+v.Version+" "+v.Revision+" "+v.Go))
	return err
}
