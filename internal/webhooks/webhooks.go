package webhooks

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the data file
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

//go:embed data/github-webhooks.jsonl.gz
var packed []byte

// Attribution says where the data comes from and holds its licence (MIT), which
// must go wherever the data goes.
//
//go:embed data/ATTRIBUTION.md
var Attribution string

// Delivery is one webhook as GitHub sent it.
type Delivery struct {
	Event      string          `json:"event"`      // the X-GitHub-Event name
	Action     *string         `json:"action"`     // nil when the event has no actions
	Repository *string         `json:"repository"` // owner/name, nil when it is about no repository
	Payload    json.RawMessage `json:"payload"`    // the body, a JSON object of 1 to 30 KB
}

// Deliveries reads all deliveries in the order of the file, 3.3 MB of JSON. Each
// call decodes them anew, so a caller may change what it got.
func Deliveries() ([]Delivery, error) { return read(packed) }

func read(gz []byte) ([]Delivery, error) {
	lines, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		return nil, fmt.Errorf("webhook data: %w", err)
	}
	var out []Delivery
	for dec := json.NewDecoder(lines); ; {
		var d Delivery
		switch err := dec.Decode(&d); {
		case errors.Is(err, io.EOF):
			return out, nil // the end, after gzip has checked its sum
		case err != nil:
			return nil, fmt.Errorf("webhook data, delivery %d: %w", len(out)+1, err)
		}
		out = append(out, d)
	}
}
