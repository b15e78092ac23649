package cli

import (
	"log/slog"
	"strings"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/client"
)

// defaultURL is where a server listens that was told nothing else.
const defaultURL = "http://127.0.0.1:7600"

// servers is the list of URLs that a client takes.
func (s *session) servers() string {
	if len(s.URL) == 0 {
		return defaultURL
	}
	return strings.Join(s.URL, ",")
}

// urlVariable names the server in the environment.
const urlVariable = "KEYLOAD_URL"

// keyVariable has the caller's key.
const keyVariable = "KEYLOAD_API_KEY"

// open connects to the server, or opens the store of --dir. The caller closes
// it with the returned function.
func (s *session) open() (api.Doer, func() error, error) {
	if s.Dir == "" {
		if s.As != "" {
			return nil, nil, &badUsage{text: "--as is for --dir; a server knows you by your key"}
		}
		c := client.New(s.servers(), s.APIKey)
		return c, c.Close, nil
	}
	tenant, principal, ok := strings.Cut(s.As, "/")
	if s.As != "" && (!ok || tenant == "" || principal == "") {
		return nil, nil, &badUsage{text: "--as must be tenant/principal, for example default/admin"}
	}
	log := slog.New(slog.NewTextHandler(s.streams.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	db, err := keyload.Open(s.Dir, keyload.Options{MustExist: true, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	if s.As != "" {
		return db.As(tenant, principal), db.Close, nil
	}
	return db, db.Close, nil
}
