package formats_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/keyload/keyload"
	"github.com/keyload/keyload/api"
)

// begin is when every store kept here was filled.
var begin = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// filler carries out the lines of a file on a store.
type filler struct {
	db     *keyload.DB
	now    time.Time
	step   int
	tokens []string // of the deliveries received last
}

// lines are the lines of a file of testdata, without comments.
func lines(name string) (out []string, err error) {
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		return nil, err
	}
	s := bufio.NewScanner(f)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out, errors.Join(s.Err(), f.Close())
}

// clock is what the store is told; it stands still but for the lines that move it.
func (f *filler) clock() time.Time { return f.now }

func (f *filler) fill(steps []string) error {
	for _, line := range steps {
		f.step++
		if seconds, err := strconv.Atoi(line); err == nil {
			f.now = f.now.Add(time.Duration(seconds) * time.Second)
			continue
		}
		resp, err := f.do(line)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		var got struct {
			Deliveries []struct{ Token string }
			Results    []struct{ Error any }
		}
		if err := json.Unmarshal(resp, &got); err != nil {
			return err
		}
		for _, r := range got.Results {
			if r.Error != nil {
				return fmt.Errorf("%s: %v", line, r.Error)
			}
		}
		if len(got.Deliveries) > 0 {
			f.tokens = nil
			for _, d := range got.Deliveries {
				f.tokens = append(f.tokens, d.Token)
			}
		}
	}
	return nil
}

var placeholder = regexp.MustCompile(`\{\{(\d)\}\}`)

// do carries out one line and returns the answer as JSON; nil for an operation
// that this program does not have.
func (f *filler) do(line string) ([]byte, error) {
	name, body, _ := strings.Cut(line, " ")
	var op *api.Operation
	for _, o := range api.Operations() {
		if o.Name == name {
			op = o
		}
	}
	if op == nil {
		return []byte("null"), nil
	}
	body = placeholder.ReplaceAllStringFunc(body, func(s string) string { return f.tokens[s[2]-'1'] })
	req, resp := reflect.New(op.Request).Interface(), reflect.New(op.Response).Interface()
	if err := json.Unmarshal([]byte(body), req); err != nil {
		return nil, err
	}
	if c, ok := req.(api.CommandRequest); ok {
		c.SetCommandID(fmt.Sprintf("5f1c0a3e-0000-4000-8000-%012d", f.step))
	}
	api.ApplyDefaults(req)
	if err := f.db.Do(context.Background(), op, req, resp); err != nil {
		return nil, err
	}
	return json.MarshalIndent(resp, "", " ")
}

// ask is the answers to all queries, as text; a refusal is an answer.
func (f *filler) ask(queries []string) string {
	var b strings.Builder
	for _, line := range queries {
		answer, err := f.do(line)
		if err != nil {
			answer = strconv.AppendQuote(nil, err.Error())
		}
		fmt.Fprintf(&b, "%s\n%s\n", line, answer)
	}
	return b.String()
}
