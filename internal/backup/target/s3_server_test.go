package target

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// s3Server speaks as much of S3 as keeping backups takes, with the answers of the
// real one. It can be told to fail.
type s3Server struct {
	mu      sync.Mutex
	objects map[string][]byte
	marks   map[string]string // what an object or an upload was given as metadata, by key or id
	uploads map[string]map[int][]byte
	ids     int
	calls   []string
	// oblivious leaves conditions unknown, as older servers do.
	oblivious bool
	// fail, if set, may answer a request itself.
	fail func(w http.ResponseWriter, r *http.Request) bool
	// pageSize is how many objects one answer lists.
	pageSize int
}

const testBucket = "backups"

// newS3 starts a server and points the environment to it.
func newS3(t *testing.T) *s3Server {
	t.Helper()
	s := &s3Server{objects: map[string][]byte{}, marks: map[string]string{}, uploads: map[string]map[int][]byte{}, pageSize: 1000}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"KEYLOAD_S3_ENDPOINT": server.URL, "AWS_ACCESS_KEY_ID": "test-id", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_REGION": "us-east-1",
		"AWS_SESSION_TOKEN": "",
	} {
		t.Setenv(name, value)
	}
	return s
}

func (s *s3Server) refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, code)
}

func (s *s3Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	s.calls = append(s.calls, r.Method+" "+r.URL.RequestURI())
	if s.fail != nil && s.fail(w, r) {
		return
	}
	if !strings.Contains(r.Header.Get("Authorization"), "Credential=test-id/") {
		s.refuse(w, http.StatusForbidden, "AccessDenied")
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket != testBucket {
		s.refuse(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	if want := r.Header.Get("X-Amz-Content-Sha256"); r.Method == http.MethodPut {
		if got := sha256.Sum256(body); hex.EncodeToString(got[:]) != want {
			s.refuse(w, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
			return
		}
	}
	switch {
	case key == "" && r.Method == http.MethodGet:
		s.list(w, q.Get("prefix"), q.Get("delimiter"), q.Get("continuation-token"))
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.ids++
		id := fmt.Sprint("upload-", s.ids)
		s.uploads[id], s.marks[id] = map[int][]byte{}, r.Header.Get(markHeader)
		fmt.Fprintf(w, `<InitiateMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>`, bucket, key, id)
	case q.Has("uploadId"):
		s.multipart(w, r, key, body)
	case r.Method == http.MethodPut:
		s.put(w, r, key, body, r.Header.Get(markHeader))
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.get(w, r, key)
	}
}

// markHeader is the one piece of metadata that the server keeps.
const markHeader = "X-Amz-Meta-" + putMark

// put keeps an object unless a condition forbids it.
func (s *s3Server) put(w http.ResponseWriter, r *http.Request, key string, body []byte, mark string) bool {
	if _, there := s.objects[key]; there && r.Header.Get("If-None-Match") == "*" && !s.oblivious {
		s.refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		return false
	}
	s.objects[key], s.marks[key] = body, mark
	w.Header().Set("ETag", etag(body))
	return true
}

func etag(b []byte) string { return fmt.Sprintf(`"%x"`, md5.Sum(b)) }

func (s *s3Server) multipart(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	id := r.URL.Query().Get("uploadId")
	parts, ok := s.uploads[id]
	if !ok {
		s.refuse(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch r.Method {
	case http.MethodPut:
		n, _ := strconv.Atoi(r.URL.Query().Get("partNumber"))
		parts[n] = body
		w.Header().Set("ETag", etag(body))
	case http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		var wanted struct {
			Part []struct {
				PartNumber int
				ETag       string
			}
		}
		if err := xml.Unmarshal(body, &wanted); err != nil {
			s.refuse(w, http.StatusBadRequest, "MalformedXML")
			return
		}
		var all []byte
		for i, p := range wanted.Part {
			if p.PartNumber != i+1 || strings.Trim(p.ETag, `"`) != strings.Trim(etag(parts[p.PartNumber]), `"`) {
				s.refuse(w, http.StatusBadRequest, "InvalidPart")
				return
			}
			all = append(all, parts[p.PartNumber]...)
		}
		if s.put(w, r, key, all, s.marks[id]) {
			delete(s.uploads, id)
			fmt.Fprintf(w, `<CompleteMultipartUploadResult><Bucket>%s</Bucket><Key>%s</Key><ETag>%s</ETag></CompleteMultipartUploadResult>`, testBucket, key, "etag")
		}
	}
}

func (s *s3Server) get(w http.ResponseWriter, r *http.Request, key string) {
	content, ok := s.objects[key]
	if !ok {
		s.refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", etag(content))
	w.Header().Set(markHeader, s.marks[key])
	w.Header().Set("Last-Modified", time.Unix(1_800_000_000, 0).UTC().Format(http.TimeFormat))
	status := http.StatusOK
	if from, to, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Range"), "bytes="), "-"); ok {
		first, _ := strconv.Atoi(from)
		last := len(content) - 1
		if to != "" {
			last, _ = strconv.Atoi(to)
		}
		last = min(last, len(content)-1)
		if first > last {
			s.refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(content)))
		content, status = content[first:last+1], http.StatusPartialContent
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}

func (s *s3Server) list(w http.ResponseWriter, prefix, delimiter, after string) {
	var out strings.Builder
	n, next := 0, ""
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok || key <= after || delimiter != "" && strings.Contains(rest, delimiter) {
			continue
		}
		if n++; n > s.pageSize {
			break
		}
		next = key
		fmt.Fprintf(&out, `<Contents><Key>%s</Key><Size>%d</Size><LastModified>2027-01-15T08:00:00.000Z</LastModified></Contents>`, key, len(s.objects[key]))
	}
	fmt.Fprintf(w, `<ListBucketResult><Name>%s</Name><Prefix>%s</Prefix><IsTruncated>%v</IsTruncated><NextContinuationToken>%s</NextContinuationToken>%s</ListBucketResult>`,
		testBucket, prefix, n > s.pageSize, next, &out)
}
