package backup_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
)

// filled is a text of just below 32 MiB, made of repetitions.
func filled(begin, piece, end string) []byte {
	const most = 32 << 20
	return []byte(begin + strings.Repeat(piece, (most-len(begin)-len(end))/len(piece)) + end)
}

// numbered is like filled, with a number in each piece.
func numbered(begin, piece, end string) []byte {
	b := []byte(begin)
	for n := 0; len(b) < 32<<20-len(end)-32; n++ {
		b = fmt.Appendf(b, piece, n)
	}
	return append(b, end...)
}

// A small archive holds whatever a compressor can make small. What reading it takes
// is measured in bytes that were allocated, whether they were kept or not.
func TestNoManifestTakesMoreMemoryThanItsTextAndAListOfItsFiles(t *testing.T) {
	content, _ := small(t)
	const most = 96 << 20 // the text is 32 MiB, and what remembers so many files 11 MiB
	for what, text := range map[string][]byte{
		"many empty files":            filled(`{"form":1,"files":[{}`, `,{}`, `]}`),
		"many shards":                 filled(`{"form":1,"shards":[{}`, `,{}`, `]}`),
		"many unknown fields":         numbered(`{"form":1`, `,"f%d":0`, `}`),
		"many unknown fields, first":  numbered(`{"f":0`, `,"f%d":0`, `,"form":1}`),
		"an object for a number":      numbered(`{"form":1,"rows":{"f":0`, `,"f%d":0`, `}}`),
		"a form of many members":      numbered(`{"form":{"f":0`, `,"f%d":0`, `}}`),
		"many fields of a file":       numbered(`{"form":1,"files":[{"f":0`, `,"f%d":0`, `}]}`),
		"lists of lists":              filled(`{"form":1,"files":[[]`, `,[]`, `]}`),
		"many values":                 filled(`{"form":1}`, ` {}`, ``),
		"one long name":               filled(`{"form":1,"`, `f`, `":0}`),
		"one long text":               filled(`{"form":1,"program":"`, `f`, `"}`),
		"one long number":             filled(`{"form":1,"rows":`, `1`, `}`),
		"white space":                 filled(`{"form":1`, ` `, `}`),
		"many files of a later form":  filled(`{"form":9,"files":[{}`, `,{}`, `]}`),
		"many fields of a later form": numbered(`{"form":9`, `,"f%d":0`, `}`),
	} {
		f := takeApart(t, content)
		f.text = text
		made := f.put()
		if len(made) > len(text)/4 {
			t.Errorf("%s: the archive has %d bytes, so it is no surprise", what, len(made))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := backup.Inspect(t.Context(), bytes.NewReader(made))
		runtime.ReadMemStats(&after)
		code := fault.Corruption
		if strings.HasSuffix(what, "later form") {
			code = fault.FormatUnsupported
		}
		if fault.CodeOf(err) != code {
			t.Errorf("%s: %v", what, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d bytes of archive took %d MiB", what, len(made), took>>20)
		}
	}
}

// A member more or less than what a manifest may have decides nothing but which
// error is answered; a depth or a length at the bound is read on.
func TestTheBoundsOfAManifestHoldAtTheBoundAndNotOneAbove(t *testing.T) {
	content, _ := small(t)
	members := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"form":1`)
		for i := range n - 1 {
			fmt.Fprintf(&b, `,"f%d":0`, i)
		}
		return b.String() + "}"
	}
	const tooMuch, unknown = "has more in it than any manifest", "has a field that nobody knows"
	items := func(n int) string {
		return strings.Replace(string(marshal(takeApart(t, content))), `"files":[`, `"files":[{}`+strings.Repeat(`,{}`, n-len(takeApart(t, content).files())-1)+`,`, 1)
	}
	text := func(n int) string { return `{"form":1,"f":"` + strings.Repeat("x", n) + `"}` }
	name := func(n int) string { return `{"form":1,"` + strings.Repeat("x", n) + `":0}` }
	for what, c := range map[string]struct{ text, want string }{
		"15 members":                  {members(15), unknown},
		"16 members":                  {members(16), unknown},
		"17 members":                  {members(17), tooMuch},
		"3 levels":                    {`{"form":1,"f":[{}]}`, unknown},
		"4 levels":                    {`{"form":1,"f":[{"g":[]}]}`, tooMuch},
		"a text of 64 KiB, less one":  {text(64<<10 - 1), unknown},
		"a text of 64 KiB":            {text(64 << 10), unknown},
		"a text of 64 KiB and one":    {text(64<<10 + 1), tooMuch},
		"a name of 64 KiB and one":    {name(64<<10 + 1), tooMuch},
		"a quote in what is too long": {`{"form":1,"f":"\"` + strings.Repeat("x", 64<<10) + `"}`, tooMuch},
		"131,071 entries":             {items(1<<17 - 1), "entry 0 of the files has no plain name"},
		"131,072 entries":             {items(1 << 17), "entry 0 of the files has no plain name"},
		"131,073 entries":             {items(1<<17 + 1), tooMuch},
	} {
		f := takeApart(t, content)
		f.text = []byte(c.text)
		_, err := backup.Inspect(t.Context(), bytes.NewReader(f.put()))
		if fault.CodeOf(err) != fault.Corruption || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}
