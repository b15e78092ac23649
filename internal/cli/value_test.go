package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyload/keyload/api"
)

// reading is a reader at a fixed instant with nothing on standard input.
func reading() *reader {
	return &reader{stdin: strings.NewReader(""), now: time.Date(2026, 2, 1, 3, 4, 5, 0, time.UTC)}
}

func TestTimesAreInstantsOrLengthsFromNow(t *testing.T) {
	for text, want := range map[string]string{
		"now":                            "2026-02-01T03:04:05.000Z",
		"+30s":                           "2026-02-01T03:04:35.000Z",
		"-1h":                            "2026-02-01T02:04:05.000Z",
		"+7d":                            "2026-02-08T03:04:05.000Z",
		"2026-03-01T00:00:00Z":           "2026-03-01T00:00:00.000Z",
		"2026-03-01T01:00:00.1234+01:00": "2026-03-01T00:00:00.123Z",
	} {
		got, err := reading().instant(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "30s", "+", "+x", "+-30s", "2026-03-01", "tomorrow", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z"} {
		if got, err := reading().instant(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}

func TestContentComesFromTheTextAFileOrStandardInputOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &reader{stdin: strings.NewReader("[2]\n")}
	for text, want := range map[string]string{`"x"`: `"x"`, "@" + file: `{"a":1}`, "-": "[2]"} {
		got, err := r.json(text)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	if _, err := r.json("-"); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("standard input was read twice: %v", err)
	}
	if _, err := r.json("@" + file + ".missing"); err == nil {
		t.Error("a missing file was read")
	}
	for _, bad := range []string{"hello", `{"a":1,"a":2}`, "1 2", ""} {
		if got, err := r.json(bad); err == nil {
			t.Errorf("%q was read as %s", bad, got)
		}
	}
}

func TestAnIndexIsNamedAfterItsFields(t *testing.T) {
	got := indexes([]string{"/customer", "/customer/name,/total"})
	if got[0].Name != "customer" || got[1].Name != "customer-name-total" || len(got[1].Paths) != 2 {
		t.Errorf("got %+v", got)
	}
	if v := api.Validate(&api.CollectionPolicy{Indexes: got, TombstoneRetentionSeconds: 1}); len(v) > 0 {
		t.Error(v)
	}
}
