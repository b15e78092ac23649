package op

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/token"
)

// pageLifeMillis is how long a page cursor can be used (contract §8).
const pageLifeMillis = 24 * 3_600_000

// maxLooked bounds the rows one page looks at, matching or not (contract §8).
const maxLooked = 10_000

// Page walks a listing page by page. The cursor is sealed, names the listing it
// belongs to, and ends after a day. Its key part is what follows the prefix.
type Page struct {
	view   *View
	about  [8]byte
	prefix []byte
	limit  int64
	added  int64
	looked int64
}

// NewPage starts a page of at most limit rows. about says what is listed, with
// every filter: a cursor of another listing is refused.
func NewPage(v *View, about string, prefix []byte, limit int64) *Page {
	p := &Page{view: v, prefix: prefix, limit: limit}
	sum := sha256.Sum256([]byte(v.Principal.Tenant + "\x00" + v.Principal.ID + "\x00" + about))
	copy(p.about[:], sum[:])
	return p
}

// Begin returns where the page starts: the From of a table.Range; nil without a
// cursor. Errors: Validation for a cursor of another listing, CursorExpired.
func (p *Page) Begin(cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	claims, err := p.view.Door.Tokens.Open(token.Page, cursor)
	if err != nil {
		return nil, err
	}
	if len(claims) < 16 || [8]byte(claims[:8]) != p.about {
		return nil, fault.New(fault.Validation, "bad_cursor", "the cursor belongs to another listing; use it with the request it came from")
	}
	if int64(binary.BigEndian.Uint64(claims[8:16])) <= p.view.Now {
		return nil, fault.New(fault.CursorExpired, "cursor_expired", "the cursor is older than a day; start the listing again")
	}
	return append(append([]byte(nil), p.prefix...), claims[16:]...), nil
}

// Full says that the page takes no more rows.
func (p *Page) Full() bool { return p.added >= p.limit || p.looked >= maxLooked }

// Add counts a row of the page.
func (p *Page) Add() { p.added++ }

// Look counts a row looked at that may not match.
func (p *Page) Look() { p.looked++ }

// Next is the cursor that continues at the row whose key part is given. An
// identifier of 256 bytes fits into a token.
func (p *Page) Next(rest []byte) string {
	claims := append([]byte(nil), p.about[:]...)
	claims = binary.BigEndian.AppendUint64(claims, uint64(p.view.Door.Now+pageLifeMillis))
	return p.view.Door.Tokens.Seal(token.Page, append(claims, rest...))
}
