package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/keyload/keyload/internal/check"
)

func TestProgressOfLongWorkIsShownOnATerminalAndNowhereElse(t *testing.T) {
	var err bytes.Buffer
	s := &session{globals: &globals{}, streams: Streams{Err: &err, ErrTerminal: true}}
	show := s.steps()
	for n := int64(1); n <= 3; n++ {
		show(check.Step{Done: "read", Unit: check.Rows}, n*1000, 0)
	}
	for n := int64(0); n <= 4096; n++ {
		show(check.Step{Done: "hashed", Unit: check.Bytes}, n, 4096)
	}
	show(check.Step{Done: "received", Unit: check.Bytes}, 3<<20, 0)
	for n := int64(0); n < 307_661; n += 512 {
		show(check.Step{Done: "checked", Unit: check.Rows}, n, max(200_000, n+1)) // more than was thought
	}
	show(check.Step{Done: "checked", Unit: check.Rows}, 307_661, 307_661)
	show(check.Step{Done: "checked", Unit: check.Shards}, 3, 9)
	lines := strings.Split(err.String(), "\n")
	for i, want := range []string{
		"read      3000 rows", "hashed    100% of 4.0 KiB", "received  3.0 MiB", "checked   100% of 307661 rows", "checked    33% of 9 shards",
	} {
		parts := strings.Split(lines[i], "\r")
		if got := parts[len(parts)-1]; strings.TrimRight(got, " ") != want {
			t.Errorf("line %d ends as %q, want %q", i, got, want)
		}
		if len(parts) > 102 {
			t.Errorf("line %d was written %d times", i, len(parts))
		}
	}
	s.streams.ErrTerminal, s.streams.OutTerminal = false, true
	if s.steps() != nil {
		t.Error("progress is written where nobody sees it")
	}
	s.streams.ErrTerminal, s.JSON = true, true
	if s.steps() != nil {
		t.Error("progress is written beside JSON")
	}
}

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 3 << 29: "1.5 GiB", 5 << 40: "5.0 TiB", 1 << 60: "1048576.0 TiB",
	} {
		if got := size(n); strings.TrimRight(got, " ") != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
