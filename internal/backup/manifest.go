package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// Form is the version of the form of archives that this program writes. One of a
// greater form is refused with FormatUnsupported.
const Form = 1

// Bounds of an archive. They are far above what a store comes to, and keep what a
// damaged or hostile archive can cost within reason.
const (
	maxManifestBytes = 32 << 20
	maxFiles         = 1 << 17
	maxFileBytes     = 8<<30 - 1 // what a plain tar header can say
	maxNameBytes     = 100       // likewise
	maxShards        = 64
)

// Manifest says what is in an archive. It is the first file in it.
type Manifest struct {
	Form            int      `json:"form"`        // version of the form of the archive
	Program         string   `json:"program"`     // version of the program that made it
	StoreFormat     int64    `json:"storeFormat"` // version of the stored form
	Incarnation     string   `json:"incarnation"` // of the store it was made of
	CreatedAt       api.Time `json:"createdAt"`   // when the copy was complete
	DataShards      int      `json:"dataShards"`  // without the catalog's, 1 to 64
	CatalogRevision uint64   `json:"catalogRevision"`
	Shards          []Shard  `json:"shards"` // all of them, the catalog's first
	Rows            int64    `json:"rows"`
	Files           []File   `json:"files"` // by name
	Bytes           int64    `json:"bytes"` // of all files together, uncompressed
}

// Shard is where one shard stands in the backup.
type Shard struct {
	Shard      int      `json:"shard"`
	Position   uint64   `json:"position"`
	LoggedTime api.Time `json:"loggedTime"`
	Digest     string   `json:"digest"` // 16 hexadecimal digits
}

// File is one file of the store.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Backup names an archive: the manifest, and the SHA-256 of its bytes, which
// stands for all that is in the archive.
type Backup struct {
	ID string `json:"id"`
	*Manifest
}

// encode writes a manifest for people as well.
func (m *Manifest) encode() ([]byte, error) {
	b, err := json.Marshal(m, json.Deterministic(true), jsontext.Multiline(true), jsontext.WithIndent(" "))
	return append(b, '\n'), err
}

func idOf(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return hex.EncodeToString(sum[:])
}

// decode reads a manifest strictly. A form that is too new is told apart from
// damage.
func decode(b []byte) (*Backup, error) {
	form, err := measureJSON(b)
	if form > Form {
		return nil, fault.New(fault.FormatUnsupported, "newer_backup",
			"the backup has form %d; this program knows forms up to %d. Use the program that made it, or a newer one", form, Form)
	}
	if err != nil {
		return nil, damaged("its manifest %s", jsonText(err))
	}
	m := &Manifest{}
	if err := json.Unmarshal(b, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, damaged("its manifest %s", jsonText(err))
	}
	if err := m.validate(); err != nil {
		return nil, damaged("its manifest is not what it must be: %v", err)
	}
	return &Backup{idOf(b), m}, nil
}

// jsonText says what is wrong with a JSON text.
func jsonText(err error) string {
	var wrong *json.SemanticError
	switch {
	case errors.Is(err, errTooMuch):
		return err.Error()
	case errors.Is(err, json.ErrUnknownName):
		return "has a field that nobody knows"
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "gives a field twice"
	case errors.As(err, &wrong):
		return fmt.Sprintf("has something else than it must at %q", string(wrong.JSONPointer))
	}
	return "is no JSON"
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	hexDigits = regexp.MustCompile(`^[0-9a-f]*$`)
)

// validate checks the bounds, and that what must agree does.
func (m *Manifest) validate() error {
	id, err := uuid.Parse(m.Incarnation)
	switch {
	case m.Form < 1:
		return fmt.Errorf("form %d", m.Form)
	case len(m.Program) > maxNameBytes:
		return fmt.Errorf("the version of the program has %d bytes", len(m.Program))
	case m.StoreFormat < 1:
		return fmt.Errorf("store format %d", m.StoreFormat)
	case err != nil || id.String() != m.Incarnation:
		return fmt.Errorf("the incarnation is no UUID")
	case m.CreatedAt < 0 || m.CreatedAt > api.MaxTime:
		return fmt.Errorf("an impossible time")
	case m.Rows < 0:
		return fmt.Errorf("%d rows", m.Rows)
	case m.DataShards < 1 || m.DataShards > maxShards || len(m.Shards) != m.DataShards+1:
		return fmt.Errorf("%d data shards and %d entries for them", m.DataShards, len(m.Shards))
	case len(m.Files) == 0 || len(m.Files) > maxFiles:
		return fmt.Errorf("%d files", len(m.Files))
	}
	for i, s := range m.Shards {
		if s.Shard != i || len(s.Digest) != 16 || !hexDigits.MatchString(s.Digest) || s.Position > 1<<63-1 {
			return fmt.Errorf("entry %d of the shards", i)
		}
	}
	return m.validateFiles()
}

func (m *Manifest) validateFiles() error {
	total := int64(0)
	folded := map[string]bool{}
	for i, f := range m.Files {
		fold := strings.ToLower(f.Name) // some file systems know no difference
		switch {
		case len(f.Name) > maxNameBytes || !plainName.MatchString(f.Name) || f.Name == manifestName:
			return fmt.Errorf("entry %d of the files has no plain name", i)
		case i > 0 && f.Name <= m.Files[i-1].Name || folded[fold]:
			return fmt.Errorf("the file %s is named twice or out of order", f.Name)
		case f.Bytes < 0 || f.Bytes > maxFileBytes:
			return fmt.Errorf("the file %s has %d bytes", f.Name, f.Bytes)
		case len(f.SHA256) != 2*sha256.Size || !hexDigits.MatchString(f.SHA256):
			return fmt.Errorf("the file %s has no SHA-256", f.Name)
		}
		folded[fold] = true
		total += f.Bytes // at most 2^17 times 2^33
	}
	if total != m.Bytes {
		return fmt.Errorf("the files have %d bytes together, and %d are said", total, m.Bytes)
	}
	return nil
}

// damaged is the error of an archive that is not what it must be.
func damaged(format string, args ...any) *fault.Error {
	return fault.New(fault.Corruption, "damaged_backup", "the backup is damaged: %s", fmt.Sprintf(format, args...))
}
