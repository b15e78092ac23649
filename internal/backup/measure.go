package backup

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the JSON of a manifest. They hold before anything of it is kept: a text
// of a few bytes more can make what reads it take a hundred times its length.
const (
	maxDepth   = 3        // the manifest, a list in it, an entry of that
	maxMembers = 16       // of one object
	maxItems   = maxFiles // of one list
	maxText    = 64 << 10 // bytes of one text as it is written, in every form to come too
)

var errTooMuch = errors.New("has more in it than any manifest")

// measureJSON reads a manifest token by token, keeps nothing, and answers its form,
// 0 if it has none. The form is that of a later program too, whatever else it holds;
// then an error says nothing.
func measureJSON(text []byte) (form int64, err error) {
	if longText(text) {
		return 0, errTooMuch
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)) // those are found later, among few
	tooMuch, isForm := false, false
	for {
		t, err := d.ReadToken()
		switch {
		case err == io.EOF && tooMuch:
			return form, errTooMuch
		case err == io.EOF:
			return form, nil
		case err != nil:
			return form, err
		}
		depth := d.StackDepth()
		if depth == 0 {
			continue // after its end only an end may follow, which is found later
		}
		kind, length := d.StackIndex(depth)
		tooMuch = tooMuch || depth > maxDepth || kind == '{' && length > 2*maxMembers || kind == '[' && length > maxItems
		switch {
		case isForm && t.Kind() == '0':
			isForm = false
			if n, err := t.Int(); err == nil && form == 0 {
				form = n
			}
		case depth == 1 && kind == '{' && length%2 == 1:
			isForm = t.Kind() == '"' && t.String() == "form"
		default:
			isForm = false
		}
	}
}

// longText says that there is a text in the JSON that is longer than any may be: a
// reader copies a name several times, as long as it is.
func longText(b []byte) bool {
	begin, inside := 0, false
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"' && inside:
			inside = false
		case b[i] == '"':
			begin, inside = i, true
		case b[i] == '\\' && inside:
			i++
		}
		if inside && i-begin > maxText {
			return true
		}
	}
	return false
}
