package target

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keyload/keyload/fault"
)

// lastOf says whether a request is the one that makes an object visible.
func lastOf(r *http.Request, inParts bool) bool {
	if inParts {
		return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
	}
	return r.Method == http.MethodPut
}

// losing carries the last request of an upload out and cuts the connection instead of
// answering it, the first times.
func losing(s *s3Server, inParts bool, times int) *int {
	lost := 0
	s.fail = func(_ http.ResponseWriter, r *http.Request) bool {
		if !lastOf(r, inParts) || lost == times {
			return false
		}
		lost++
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		key := strings.TrimPrefix(r.URL.Path, "/"+testBucket+"/")
		if unheard := httptest.NewRecorder(); inParts {
			s.multipart(unheard, r, key, body)
		} else {
			s.put(unheard, r, key, body, r.Header.Get(markHeader))
		}
		panic(http.ErrAbortHandler)
	}
	return &lost
}

// What is sent again because an answer was lost meets what the first one has made.
func TestAnUploadWhoseAnswerWasLostIsKnownAgainAndIsASuccess(t *testing.T) {
	for _, c := range []struct {
		what  string
		bytes int
		times int
	}{
		{"of one part, once", 500, 1},
		{"of one part, whenever it is sent", 500, 1000},
		{"of many parts, once", 3500, 1},
		{"of many parts, whenever it is sent", 3500, 1000},
	} {
		s := newS3(t)
		p := s3Place(t, "s3://backups/")
		lost := losing(s, c.bytes > p.Target.(*bucket).part, c.times)
		n, err := p.Put(t.Context(), "a.klb", bytes.NewReader(content(c.bytes)))
		if err != nil || n != int64(c.bytes) {
			t.Errorf("%s: %d bytes, %v", c.what, n, err)
		}
		if *lost == 0 {
			t.Errorf("%s: no answer was lost: the test tests nothing", c.what)
		}
		if !bytes.Equal(s.objects["a.klb"], content(c.bytes)) || len(s.uploads) > 0 {
			t.Errorf("%s: %d bytes are kept, and %d uploads are open", c.what, len(s.objects["a.klb"]), len(s.uploads))
		}
	}
}

// Somebody else may come first while the parts are sent: with other bytes, or with
// the very same ones, that upload is not this one.
func TestAnUploadIsNotTakenForThatOfSomebodyElse(t *testing.T) {
	for _, size := range []int{500, 3500} {
		for _, theirs := range [][]byte{[]byte("theirs"), content(size)} {
			s := newS3(t)
			p := s3Place(t, "s3://backups/")
			inParts := size > p.Target.(*bucket).part
			s.fail = func(_ http.ResponseWriter, r *http.Request) bool {
				if _, there := s.objects["a.klb"]; !there && lastOf(r, inParts) {
					s.objects["a.klb"], s.marks["a.klb"] = theirs, "THEIRS"
				}
				return false
			}
			_, err := p.Put(t.Context(), "a.klb", bytes.NewReader(content(size)))
			wants(t, "somebody came first", err, fault.Conflict, "backup_exists")
			if !bytes.Equal(s.objects["a.klb"], theirs) {
				t.Error("their backup was replaced")
			}
		}
	}
}

// Where nobody says what became of the upload, neither its success nor its failure may
// be told.
func TestAnUploadOfWhichNothingCanBeLearntIsUnconfirmed(t *testing.T) {
	for _, size := range []int{500, 3500} {
		s := newS3(t)
		p := s3Place(t, "s3://backups/")
		inParts := size > p.Target.(*bucket).part
		sent := false
		s.fail = func(w http.ResponseWriter, r *http.Request) bool {
			if sent = sent || lastOf(r, inParts); sent {
				s.refuse(w, http.StatusForbidden, "AccessDenied")
			}
			return sent
		}
		_, err := p.Put(t.Context(), "a.klb", bytes.NewReader(content(size)))
		wants(t, "nothing is answered", err, fault.RecoveryRequired, "backup_unconfirmed")
	}
}
