package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestATimeIsWrittenInUTCWithMillisecondsAndReadWithAnyOffset(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-01-31T12:00:00Z"`:          `"2026-01-31T12:00:00.000Z"`,
		`"2026-01-31T12:00:00.1239999Z"`:  `"2026-01-31T12:00:00.123Z"`,
		`"2026-01-31T12:00:00.000+02:00"`: `"2026-01-31T10:00:00.000Z"`,
		`"9999-12-31T23:59:59.999Z"`:      `"9999-12-31T23:59:59.999Z"`,
		`"1970-01-01T00:00:00.001Z"`:      `"1970-01-01T00:00:00.001Z"`,
		`null`:                            `"1970-01-01T00:00:00.000Z"`,
		`"2026-01-31"`:                    "",
		`"2026-01-31T12:00:00"`:           "",
		`"2026-01-31 12:00:00Z"`:          "",
		`"10000-01-01T00:00:00Z"`:         "",
		`""`:                              "",
		`1767225600000`:                   "",
		`{}`:                              "",
	} {
		var v Time
		err := json.Unmarshal([]byte(text), &v)
		if want == "" {
			if err == nil {
				t.Errorf("%s was read as %s", text, v)
			}
			continue
		}
		if out, errOut := json.Marshal(v); err != nil || errOut != nil || string(out) != want {
			t.Errorf("%s: %s, %v, %v; want %s", text, out, err, errOut, want)
		}
	}
	if got := TimeOf(MaxTime.Time()); got != MaxTime {
		t.Errorf("MaxTime became %d", got)
	}
	if got := TimeOf(time.Unix(1, 999_999)).Time(); !got.Equal(time.Unix(1, 0)) || got.Location() != time.UTC {
		t.Errorf("got %v", got)
	}
}

func TestAJSONValueKeepsItsTextWithoutWhiteSpaceBetweenTokens(t *testing.T) {
	for in, want := range map[string]string{
		` { "a" : [ 1.10 , "x y" ] } `: `{"a":[1.10,"x y"]}`,
		`{"b":1,"a":"\u0041\/"}`:       `{"b":1,"a":"\u0041\/"}`,
		`{"a\" ":"[ \\" , "\\\\" : 1}`: `{"a\" ":"[ \\","\\\\":1}`,
		`"a b"`:                        `"a b"`,
		`null`:                         `null`,
	} {
		var v JSON
		if err := json.Unmarshal([]byte(in), &v); err != nil || string(v) != want {
			t.Errorf("%s: %s, %v", in, v, err)
		}
	}
	if b, err := json.Marshal(struct{ V JSON }{}); err != nil || string(b) != `{"V":null}` {
		t.Errorf("a value that is absent: %s, %v", b, err)
	}
	if err := json.Unmarshal([]byte(strings.Repeat("[", 33)+strings.Repeat("]", 33)), new(JSON)); err == nil {
		t.Error("33 levels were read")
	}
}

func TestOfEncodesAGoValueAndLeavesJSONAlone(t *testing.T) {
	if got := string(Of(map[string]any{"a": 1})); got != `{"a":1}` {
		t.Error(got)
	}
	if got := string(Of(JSON(`{ }`))); got != `{ }` {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a channel has a JSON form")
		}
	}()
	Of(make(chan int))
}

func TestAPartitionComesBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.StringN(1, 8, -1), rapid.SampledFrom([]string{"/", "%", "%2F", "a/b%c", "%25"}))
		p := PartitionRef{part.Draw(t, "tenant"), part.Draw(t, "database"), part.Draw(t, "domain"), part.Draw(t, "key")}
		if back, err := ParsePartition(p.String()); err != nil || back != p {
			t.Fatalf("%q became %+v, %v", p.String(), back, err)
		}
	})
}

func TestAPartitionTextMayLeaveOutWhatHasADefault(t *testing.T) {
	for text, want := range map[string]PartitionRef{
		"":        {"default", "main", "main", "main"},
		"a":       {"a", "main", "main", "main"},
		"a/b/c":   {"a", "b", "c", "main"},
		"a/b/c/d": {"a", "b", "c", "d"},
	} {
		if p, err := ParsePartition(text); err != nil || p != want {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{"a/b/c/d/e", "a%", "a%20b"} {
		if p, err := ParsePartition(text); err == nil {
			t.Errorf("%q was read as %+v", text, p)
		}
	}
}
