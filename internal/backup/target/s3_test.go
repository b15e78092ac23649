package target

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

func TestTheSettingsOfS3ComeFromTheEnvironment(t *testing.T) {
	base := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}
	for _, c := range []struct {
		set  map[string]string
		want string // endpoint, or "" for a refusal
	}{
		{nil, "https://s3.amazonaws.com"},
		{map[string]string{"KEYLOAD_S3_ENDPOINT": "http://127.0.0.1:9000"}, "http://127.0.0.1:9000"},
		{map[string]string{"KEYLOAD_S3_ENDPOINT": "https://minio.example.org/"}, "https://minio.example.org"},
		{map[string]string{"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_S3": "http://b:1"}, "http://b:1"},
		{map[string]string{"AWS_ENDPOINT_URL": "http://a:1", "KEYLOAD_S3_ENDPOINT": "http://c:1"}, "http://c:1"},
		{map[string]string{"KEYLOAD_S3_ENDPOINT": "127.0.0.1:9000"}, ""},
		{map[string]string{"KEYLOAD_S3_ENDPOINT": "ftp://x"}, ""},
		{map[string]string{"KEYLOAD_S3_ENDPOINT": "http://x/bucket"}, ""},
		{map[string]string{"AWS_SECRET_ACCESS_KEY": ""}, ""},
		{map[string]string{"AWS_ACCESS_KEY_ID": ""}, ""},
	} {
		core, err := connect(func(name string) string {
			if v, ok := c.set[name]; ok {
				return v
			}
			return base[name]
		})
		switch {
		case c.want == "":
			wants(t, fmt.Sprint(c.set), err, fault.Validation, "s3_settings")
		case err != nil || core.EndpointURL().String() != c.want:
			t.Errorf("%v: %v, %v", c.set, core, err)
		}
	}
}

func TestALargeBackupIsUploadedInPartsAndBecomesVisibleAtOnce(t *testing.T) {
	s := newS3(t)
	p := s3Place(t, "s3://backups/daily/")
	_, err := p.Put(t.Context(), "a.klb", bytes.NewReader(content(3500)))
	must(t, err)
	want := "HEAD POST PUT PUT PUT PUT POST"
	var got []string
	for _, c := range s.calls {
		got = append(got, strings.Fields(c)[0])
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the requests were %v, want %s", s.calls, want)
	}
	if !bytes.Equal(s.objects["daily/a.klb"], content(3500)) || len(s.uploads) != 0 {
		t.Errorf("kept: %d bytes, %d uploads are open", len(s.objects["daily/a.klb"]), len(s.uploads))
	}
}

func TestAnUploadThatFailsTakesItsPartsAlong(t *testing.T) {
	s := newS3(t)
	p := s3Place(t, "s3://backups/")
	for _, at := range []string{"partNumber=1", "partNumber=3", "POST /backups/a.klb?uploadId"} {
		s.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.Method+" "+r.URL.RequestURI(), at) {
				return false
			}
			s.refuse(w, http.StatusBadRequest, "EntityTooSmall")
			return true
		}
		_, err := p.Put(t.Context(), "a.klb", bytes.NewReader(content(5000)))
		wants(t, at, err, fault.RecoveryRequired, "s3_failed")
		if len(s.objects) > 0 || len(s.uploads) > 0 {
			t.Errorf("%s: %d objects and %d uploads are left", at, len(s.objects), len(s.uploads))
		}
	}
}

func TestAServerThatKnowsNoConditionsIsAskedBefore(t *testing.T) {
	s := newS3(t)
	s.oblivious = true
	p := s3Place(t, "s3://backups/")
	s.objects["a.klb"] = []byte("first")
	_, err := p.Put(t.Context(), "a.klb", strings.NewReader("second"))
	wants(t, "a second backup", err, fault.Conflict, "backup_exists")
	if got := string(s.objects["a.klb"]); got != "first" {
		t.Errorf("it became %q", got)
	}
}

func TestAListOfManyPagesIsComplete(t *testing.T) {
	s := newS3(t)
	s.pageSize = 3
	for i := range 10 {
		s.objects[fmt.Sprintf("daily/%d.klb", i)] = nil
	}
	s.objects["daily/older/x.klb"], s.objects["other.klb"], s.objects["daily/readme"] = nil, nil, nil
	list, err := s3Place(t, "s3://backups/daily/").List(t.Context())
	must(t, err)
	if len(list) != 10 || list[9].Name != "9.klb" {
		t.Errorf("listed: %+v", list)
	}
}

// cutting answers reads with a part of what they ask for, and cuts the connection.
func cutting(s *s3Server, after int, times int) *int {
	cuts := 0
	s.fail = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || cuts >= times {
			return false
		}
		cuts++
		from := 0
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		all := s.objects["a.klb"]
		w.Header().Set("Content-Length", fmt.Sprint(len(all)-from))
		w.Header().Set("ETag", etag(all))
		w.Header().Set("Last-Modified", "Fri, 15 Jan 2027 08:00:00 GMT")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(all[from:min(from+after, len(all))])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return &cuts
}

func TestAConnectionThatIsLostIsTakenUpWhereItEnded(t *testing.T) {
	s := newS3(t)
	s.objects["a.klb"] = content(100_000)
	p := s3Place(t, "s3://backups/a.klb")
	cuts := cutting(s, 9_000, 8)
	if got := p.read(t, "a.klb"); !bytes.Equal(got, content(100_000)) {
		t.Errorf("%d bytes were read, or others", len(got))
	}
	if *cuts != 8 {
		t.Errorf("it was cut %d times: the test tests nothing", *cuts)
	}
	cutting(s, 0, 1000)
	r, err := p.Open(t.Context())
	must(t, err)
	if n, err := r.Read(make([]byte, 10)); err == nil {
		t.Errorf("a connection without any progress gave %d bytes", n)
	}
	must(t, r.Close())
}
