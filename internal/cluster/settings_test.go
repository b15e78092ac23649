package cluster

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

func sound() Settings {
	return Settings{
		Cluster: "prod", Node: 2, Listen: "10.0.0.2:7700", CAFile: "certs/ca.pem", CertFile: "certs/node-2.pem",
		KeyFile: "/keys/node-2.key", Join: []string{"10.0.0.1:7700", "[::1]:7700", "a.example:1"},
	}
}

func TestSettingsComeBackAsTheyWereWrittenWithPathsOfTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, found, err := Read(dir); found || err != nil {
		t.Fatalf("an empty directory has settings: %v, %v", found, err)
	}
	if err := Write(dir, sound()); err != nil {
		t.Fatal(err)
	}
	want := sound()
	want.CAFile, want.CertFile = filepath.Join(dir, "certs/ca.pem"), filepath.Join(dir, "certs/node-2.pem")
	got, found, err := Read(dir)
	if err != nil || !found || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, %v", got, found, err)
	}
	other := sound()
	other.Node = 3
	if err := Write(dir, other); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("written again: %v", err)
	}
	if again, _, _ := Read(dir); again.Node != 2 {
		t.Error("the settings were replaced")
	}
}

func TestEverySettingHasItsBounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Settings)
		want   string // in the error; "" if there is none
	}{
		{"as they are", func(*Settings) {}, ""},
		{"the shortest name", func(s *Settings) { s.Cluster = "a" }, ""},
		{"no name", func(s *Settings) { s.Cluster = "" }, "cluster must be"},
		{"the longest name", func(s *Settings) { s.Cluster = strings.Repeat("a", MaxName) }, ""},
		{"a longer name", func(s *Settings) { s.Cluster = strings.Repeat("a", MaxName+1) }, "cluster must be"},
		{"a capital", func(s *Settings) { s.Cluster = "Prod" }, "cluster must be"},
		{"a slash", func(s *Settings) { s.Cluster = "a/b" }, "cluster must be"},
		{"a dash at the end", func(s *Settings) { s.Cluster = "a-" }, "cluster must be"},
		{"no node", func(s *Settings) { s.Node = 0 }, "node must be"},
		{"the first node", func(s *Settings) { s.Node = 1 }, ""},
		{"the last node", func(s *Settings) { s.Node = MaxNode }, ""},
		{"one after it", func(s *Settings) { s.Node = MaxNode + 1 }, "node must be"},
		{"nowhere to listen", func(s *Settings) { s.Listen = "" }, "listen must be host:port"},
		{"a free port", func(s *Settings) { s.Listen = "localhost:0" }, ""},
		{"the last port", func(s *Settings) { s.Listen = "localhost:65535" }, ""},
		{"one after it", func(s *Settings) { s.Listen = "localhost:65536" }, "listen must be host:port"},
		{"everywhere", func(s *Settings) { s.Listen = ":7700" }, "advertise must be given"},
		{"everywhere, in words", func(s *Settings) { s.Listen = "[::]:7700" }, "advertise must be given"},
		{"everywhere, and where", func(s *Settings) { s.Listen, s.Advertise = "0.0.0.0:7700", "a.example:7700" }, ""},
		{"advertised nowhere", func(s *Settings) { s.Advertise = "0.0.0.0:7700" }, "advertise must have a host"},
		{"advertised without a port", func(s *Settings) { s.Advertise = "a.example:0" }, "advertise must be host:port with a port"},
		{"no authority", func(s *Settings) { s.CAFile = "" }, "caFile must name"},
		{"no certificate", func(s *Settings) { s.CertFile = "" }, "certFile must name"},
		{"no key", func(s *Settings) { s.KeyFile = "" }, "keyFile must name"},
		{"the first node of all", func(s *Settings) { s.Bootstrap, s.Join = true, nil }, ""},
		{"both", func(s *Settings) { s.Bootstrap = true }, "either bootstrap"},
		{"neither", func(s *Settings) { s.Join = nil }, "either bootstrap"},
		{"a wrong address to join at", func(s *Settings) { s.Join[1] = "nobody" }, "join/1 must be host:port"},
		{"an address of nobody to join at", func(s *Settings) { s.Join[0] = ":7700" }, "join/0 must have a host"},
		{"as many as may be", func(s *Settings) { s.Join = repeated(MaxJoin) }, ""},
		{"one more", func(s *Settings) { s.Join = repeated(MaxJoin + 1) }, "at most 16 addresses"},
	} {
		s := sound()
		c.change(&s)
		err := s.Check()
		if c.want == "" && err != nil || c.want != "" && (fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
		dir := t.TempDir()
		if werr := Write(dir, s); (werr == nil) != (err == nil) {
			t.Errorf("%s: written with %v", c.name, werr)
		}
		if _, found, _ := Read(dir); found != (err == nil) {
			t.Errorf("%s: found is %v", c.name, found)
		}
	}
}

func repeated(n int) (all []string) {
	for range n {
		all = append(all, "a.example:7700")
	}
	return all
}

func TestAFileThatIsNoSettingsIsRefusedByNameAndPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"no JSON", "node = 1", "must be a JSON object"},
		{"cut short", `{"cluster": "a"`, "ends too early"},
		{"unknown field", `{"cluster": "a", "nodeID": 1}`, "nodeID"},
		{"twice", `{"cluster": "a", "cluster": "b"}`, "given twice"},
		{"wrong type", `{"node": "1"}`, "number"},
		{"negative", `{"node": -1}`, "number"},
		{"too large", `{"cluster": "` + strings.Repeat("a", maxFile) + `"}`, "no settings file"},
		{"two values", `{"cluster": "a"} {}`, "JSON"},
		{"unsound", `{"cluster": "a"}`, "node must be"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, File), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, found, err := Read(dir)
		if found || fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join(dir, File)) {
			t.Errorf("%s: %v, %v", c.name, found, err)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, File), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, found, err := Read(dir); found || fault.CodeOf(err) != fault.Validation {
		t.Errorf("a directory: %v, %v", found, err)
	}
}
