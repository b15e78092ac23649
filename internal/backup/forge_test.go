package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"

	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/backup"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// forged is an archive taken apart, to be put together in another way by
// somebody who can make every checksum fit.
type forged struct {
	t        testing.TB
	manifest map[string]any
	text     []byte // of the manifest, if it is not to be made of it
	entries  []forgedEntry
	window   int
	behind   []byte // after the end of the tar
}

type forgedEntry struct {
	header  tar.Header
	content []byte
}

// takeApart uses nothing but what every Go program has, and zstd: an archive is
// one tar behind zstd.
func takeApart(t testing.TB, archive []byte) *forged {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(archive))
	must(t, err)
	defer z.Close()
	f := &forged{t: t, window: 1 << 20}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		f.entries = append(f.entries, forgedEntry{*h, content})
	}
	rest, err := io.ReadAll(z)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%d bytes follow the tar, %v", len(rest), err)
	}
	if f.entries[0].header.Name != "manifest.json" {
		t.Fatalf("the first entry is %s", f.entries[0].header.Name)
	}
	f.manifest = map[string]any{}
	d := json.NewDecoder(bytes.NewReader(f.entries[0].content))
	d.UseNumber()
	must(t, d.Decode(&f.manifest))
	f.entries = f.entries[1:]
	return f
}

func (f *forged) files() []any              { return f.manifest["files"].([]any) }
func (f *forged) file(i int) map[string]any { return f.files()[i].(map[string]any) }

// put makes an archive of the parts.
func (f *forged) put() []byte {
	f.t.Helper()
	text := f.text
	if text == nil {
		var err error
		text, err = json.Marshal(f.manifest)
		must(f.t, err)
	}
	created, err := time.Parse(time.RFC3339, fmt.Sprint(f.manifest["createdAt"]))
	if err != nil || created.Unix() < 0 {
		created = time.Unix(0, 0) // a header can say no other
	}
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithWindowSize(f.window), zstd.WithEncoderCRC(true))
	must(f.t, err)
	w := tar.NewWriter(z)
	first := tar.Header{
		Typeflag: tar.TypeReg, Name: "manifest.json", Size: int64(len(text)), Mode: 0o600, ModTime: created.Truncate(time.Second), Format: tar.FormatUSTAR,
	}
	must(f.t, w.WriteHeader(&first))
	_, err = w.Write(text)
	must(f.t, err)
	for i := range f.entries {
		must(f.t, w.WriteHeader(&f.entries[i].header))
		_, err := w.Write(f.entries[i].content)
		must(f.t, err)
	}
	must(f.t, w.Close())
	_, err = z.Write(f.behind)
	must(f.t, err)
	must(f.t, z.Close())
	return sealed(out.Bytes())
}

func sealed(b []byte) []byte {
	sum := sha256.Sum256(b)
	b = binary.LittleEndian.AppendUint32(b, 0x184D2A5B)
	b = binary.LittleEndian.AppendUint32(b, sha256.Size)
	return append(b, sum[:]...)
}

// set replaces the content of a file, and makes the manifest fit.
func (f *forged) set(i int, content []byte) {
	old := len(f.entries[i].content)
	f.entries[i].content, f.entries[i].header.Size = content, int64(len(content))
	sum := sha256.Sum256(content)
	f.file(i)["bytes"], f.file(i)["sha256"] = len(content), hex.EncodeToString(sum[:])
	total, err := f.manifest["bytes"].(json.Number).Int64()
	must(f.t, err)
	f.manifest["bytes"] = json.Number(fmt.Sprint(total + int64(len(content)-old)))
}

// rename gives a file another name everywhere.
func (f *forged) rename(i int, name string) {
	f.file(i)["name"], f.entries[i].header.Name = name, name
}

func TestAnArchiveThatIsPutTogetherAgainAsItWasIsTaken(t *testing.T) {
	content, _ := small(t)
	if _, err := backup.Verify(t.Context(), bytes.NewReader(takeApart(t, content).put()), "", nil); err != nil {
		t.Errorf("the test's own archives are refused, so it tests nothing: %v", err)
	}
}

// Every checksum fits, and it is refused all the same.
func TestAForgedArchiveIsRefusedAndNothingIsRestored(t *testing.T) {
	content, _ := small(t)
	for what, forge := range map[string]func(f *forged){
		"an unknown field":            func(f *forged) { f.manifest["colour"] = "red" },
		"an unknown field of a file":  func(f *forged) { f.file(0)["mode"] = 7 },
		"another case of a field":     func(f *forged) { f.manifest["Rows"] = f.manifest["rows"]; delete(f.manifest, "rows") },
		"no form":                     func(f *forged) { f.manifest["form"] = 0 },
		"a form that is no number":    func(f *forged) { f.manifest["form"] = "1" },
		"no store format":             func(f *forged) { f.manifest["storeFormat"] = 0 },
		"an incarnation that is none": func(f *forged) { f.manifest["incarnation"] = "x" },
		"an incarnation in capitals":  func(f *forged) { f.manifest["incarnation"] = strings.ToUpper(f.manifest["incarnation"].(string)) },
		"another incarnation":         func(f *forged) { f.manifest["incarnation"] = "5f1c0a3e-0000-4000-8000-000000000001" },
		"a time before all times":     func(f *forged) { f.manifest["createdAt"] = "1960-01-01T00:00:00Z" },
		"negative rows":               func(f *forged) { f.manifest["rows"] = -1 },
		"no shards":                   func(f *forged) { f.manifest["dataShards"] = 0; f.manifest["shards"] = []any{} },
		"more shards than it says":    func(f *forged) { f.manifest["dataShards"] = 1 },
		"shards out of order":         func(f *forged) { s := f.manifest["shards"].([]any); s[0], s[1] = s[1], s[0] },
		"another position of a shard": func(f *forged) { f.manifest["shards"].([]any)[1].(map[string]any)["position"] = 7 },
		"another digest of a shard":   func(f *forged) { f.manifest["shards"].([]any)[1].(map[string]any)["digest"] = "0123456789abcdef" },
		"a digest that is none":       func(f *forged) { f.manifest["shards"].([]any)[1].(map[string]any)["digest"] = "x" },
		"another catalog revision":    func(f *forged) { f.manifest["catalogRevision"] = 999 },
		"another number of rows":      func(f *forged) { f.manifest["rows"] = 3 },
		"no files":                    func(f *forged) { f.manifest["files"] = []any{}; f.manifest["bytes"] = 0; f.entries = nil },
		"files out of order":          func(f *forged) { s := f.files(); s[0], s[1] = s[1], s[0]; e := f.entries; e[0], e[1] = e[1], e[0] },
		"a file named twice":          func(f *forged) { f.rename(1, f.entries[0].header.Name) },
		"names that differ in case":   func(f *forged) { f.rename(0, "A.SST"); f.rename(1, "a.sst") },
		"a path upwards":              func(f *forged) { f.rename(0, "../evil") },
		"a path":                      func(f *forged) { f.rename(0, "a/b") },
		"an absolute path":            func(f *forged) { f.rename(0, "/evil") },
		"a path of another system":    func(f *forged) { f.rename(0, `a\b`) },
		"a hidden name":               func(f *forged) { f.rename(0, ".x") },
		"no name":                     func(f *forged) { f.file(0)["name"] = "" },
		"a name with a line end":      func(f *forged) { f.rename(0, "a\nb") },
		"the name of the manifest":    func(f *forged) { f.rename(len(f.entries)-1, "manifest.json") },
		"a name that is too long":     func(f *forged) { f.file(0)["name"] = strings.Repeat("A", 101) },
		"negative bytes":              func(f *forged) { f.file(0)["bytes"] = -1 },
		"more bytes than any file":    func(f *forged) { f.file(0)["bytes"] = int64(8 << 30); f.manifest["bytes"] = int64(8<<30) + 1 },
		"bytes that overflow":         func(f *forged) { f.file(0)["bytes"] = int64(math.MaxInt64); f.file(1)["bytes"] = int64(math.MaxInt64) },
		"another sum of bytes":        func(f *forged) { f.manifest["bytes"] = 1 },
		"a sum that is none":          func(f *forged) { f.file(0)["sha256"] = "abc" },
		"a sum in capitals":           func(f *forged) { f.file(2)["sha256"] = strings.ToUpper(f.file(2)["sha256"].(string)) },
		"another content":             func(f *forged) { f.entries[2].content = bytes.Repeat([]byte{1}, len(f.entries[2].content)) },
		"contents swapped":            func(f *forged) { swapContents(f) },
		"entries swapped":             func(f *forged) { f.entries[0], f.entries[1] = f.entries[1], f.entries[0] },
		"an entry missing":            func(f *forged) { f.entries = f.entries[:len(f.entries)-1] },
		"an entry missing in between": func(f *forged) { f.entries = append(f.entries[:1:1], f.entries[2:]...) },
		"an entry twice":              func(f *forged) { f.entries = append(f.entries[:1:1], f.entries...) },
		"an entry more":               func(f *forged) { f.entries = append(f.entries, more(f, "extra.sst")) },
		"a file missing, as it says":  func(f *forged) { dropTable(f) },
		"a link": func(f *forged) {
			h := &f.entries[0].header
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0
			f.entries[0].content = nil
		},
		"a directory":                   func(f *forged) { f.entries = append([]forgedEntry{directory(f)}, f.entries...) },
		"an entry that may be executed": func(f *forged) { f.entries[0].header.Mode = 0o755 },
		"an entry of somebody":          func(f *forged) { f.entries[0].header.Uname = "root" },
		"an entry of another time":      func(f *forged) { f.entries[0].header.ModTime = time.Unix(1, 0) },
		"an entry with attributes": func(f *forged) {
			h := &f.entries[0].header
			h.Format, h.PAXRecords = tar.FormatPAX, map[string]string{"SCHILY.xattr.user.x": "y"}
		},
		"bytes behind the tar":        func(f *forged) { f.behind = []byte{1} },
		"zeros behind the tar":        func(f *forged) { f.behind = make([]byte, 512) },
		"a manifest that is none":     func(f *forged) { f.text = []byte("[]") },
		"an empty manifest":           func(f *forged) { f.text = []byte{} },
		"a manifest with more":        func(f *forged) { f.text = append(marshal(f), '{') },
		"a field that is given twice": func(f *forged) { f.text = bytes.Replace(marshal(f), []byte("{"), []byte(`{"rows":1,`), 1) },
		"a manifest without limit":    func(f *forged) { f.text = append(marshal(f), bytes.Repeat([]byte(" "), 32<<20)...) },
		"a window without limit":      func(f *forged) { f.window = 64 << 20; f.behind = make([]byte, 65<<20) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := takeApart(t, content)
			forge(f)
			made := f.put()
			files := vfs.NewMem()
			_, err := backup.Restore(t.Context(), from(made), "to", backup.RestoreOptions{Files: kv.Options{FS: files}})
			if fault.CodeOf(err) != fault.Corruption {
				t.Errorf("restore says %v", err)
			}
			absent(t, what, files, "to")
		})
	}
}

func marshal(f *forged) []byte {
	text, err := json.Marshal(f.manifest)
	must(f.t, err)
	return text
}

func swapContents(f *forged) {
	n := len(f.entries) - 1
	f.entries[0].content, f.entries[n].content = f.entries[n].content, f.entries[0].content
	for i := range f.entries {
		f.entries[i].header.Size = int64(len(f.entries[i].content))
	}
}

func more(f *forged, name string) forgedEntry {
	h := f.entries[0].header
	h.Name, h.Size = name, 1
	return forgedEntry{h, []byte{1}}
}

func directory(f *forged) forgedEntry {
	h := f.entries[0].header
	h.Typeflag, h.Name, h.Size = tar.TypeDir, "sub/", 0
	return forgedEntry{h, nil}
}

// dropTable leaves a table out, of the manifest too.
func dropTable(f *forged) {
	for i := range f.entries {
		if !strings.HasSuffix(f.entries[i].header.Name, ".sst") {
			continue
		}
		f.set(i, nil)
		f.manifest["files"] = append(f.files()[:i:i], f.files()[i+1:]...)
		f.entries = append(f.entries[:i:i], f.entries[i+1:]...)
		return
	}
	f.t.Fatal("the archive has no table")
}

func TestAnArchiveOfANewerProgramIsRefusedAsThat(t *testing.T) {
	content, _ := small(t)
	for what, c := range map[string]struct {
		forge  func(f *forged)
		reason string
	}{
		"a newer form":          {func(f *forged) { f.manifest["form"] = backup.Form + 1; f.manifest["what"] = "is new" }, "newer_backup"},
		"a newer stored format": {func(f *forged) { f.manifest["storeFormat"] = system.Format + 1 }, "newer_format"},
	} {
		f := takeApart(t, content)
		c.forge(f)
		files := vfs.NewMem()
		_, err := backup.Restore(t.Context(), from(f.put()), "to", backup.RestoreOptions{Files: kv.Options{FS: files}})
		wants(t, what, err, fault.FormatUnsupported, c.reason)
		absent(t, what, files, "to")
	}
}
