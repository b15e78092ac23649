package node

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/engine"
)

func TestTheFirstNodeOfAClusterIsInItsListWhenItServes(t *testing.T) {
	for range 3 {
		var listed engine.Members
		var failed error
		s := start(t, func(o *Options) {
			certs := t.TempDir()
			authority, err := cluster.MakeAuthority(certs, "trial", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			issued, err := authority.Issue(certs, 1, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if err := cluster.Write(o.Dir, cluster.Settings{
				Cluster: "trial", Node: 1, Listen: "127.0.0.1:0", Bootstrap: true,
				CAFile: filepath.Join(certs, "ca.pem"), CertFile: issued.CertFile, KeyFile: issued.KeyFile,
			}); err != nil {
				t.Fatal(err)
			}
			o.Opened = func(e *engine.Engine) { listed, failed = engine.Nodes(e) }
		})
		if failed != nil || len(listed.All) != 1 || listed.All[0].URL != s.url {
			t.Fatalf("%+v is listed, %v; want node 1 at %s", listed.All, failed, s.url)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
