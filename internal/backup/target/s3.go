package target

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/keyload/keyload/fault"
)

const (
	scheme = "s3://"
	// partBytes is how much is held of a backup on its way; with the most parts
	// that S3 takes it bounds a backup at 625 GiB.
	partBytes = 64 << 20
	maxParts  = 10_000
	// tidyTime bounds what is done after an upload has failed.
	tidyTime = 30 * time.Second
)

// bucket keeps backups as objects below a prefix. S3 shows an object when all of
// it is there. That none is replaced is S3's part (If-None-Match); a server that
// does not know it is asked before.
type bucket struct {
	core         *minio.Core
	name, prefix string
	part         int
}

// locateS3 finds s3://bucket/key and s3://bucket/prefix/.
func locateS3(location string) (Place, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(location, scheme), "/")
	if name == "" {
		return Place{}, fault.New(fault.Validation, "location", "write s3://bucket/key or s3://bucket/prefix/")
	}
	cut := strings.LastIndexByte(key, '/') + 1
	b := &bucket{name: name, prefix: key[:cut], part: partBytes}
	var err error
	if b.core, err = connect(os.Getenv); err != nil {
		return Place{}, err
	}
	return Place{Target: b, Name: key[cut:], where: scheme + name + "/" + b.prefix}, nil
}

// connect reads the settings of S3 from the environment. Nothing is sent yet.
func connect(env func(string) string) (*minio.Core, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := env(n); v != "" {
				return v
			}
		}
		return ""
	}
	id, secret := env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")
	if id == "" || secret == "" {
		return nil, fault.New(fault.Validation, "s3_settings", "for S3 set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION in the environment, and KEYLOAD_S3_ENDPOINT for a server other than Amazon's")
	}
	endpoint, lookup := "https://s3.amazonaws.com", minio.BucketLookupAuto
	if own := first("KEYLOAD_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"); own != "" {
		endpoint, lookup = own, minio.BucketLookupPath
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, fault.New(fault.Validation, "s3_settings", "KEYLOAD_S3_ENDPOINT must be the URL of a server, such as https://minio.example.org:9000")
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(id, secret, env("AWS_SESSION_TOKEN")),
		Secure: u.Scheme == "https", Region: first("AWS_REGION", "AWS_DEFAULT_REGION"), BucketLookup: lookup, MaxRetries: maxAttempts,
	})
	if err != nil {
		return nil, fault.New(fault.Validation, "s3_settings", "%v", err)
	}
	return core, nil
}

func (b *bucket) path(name string) string { return scheme + b.name + "/" + b.prefix + name }

// putMark is the metadata by which an upload knows its own object again.
const putMark = "Keyload-Put"

// onlyNew makes a write fail where there is something already. The hash of the
// content is given, so none is made.
func onlyNew(mark string) (o minio.PutObjectOptions) {
	o.DisableContentSha256 = true
	o.SetMatchETagExcept("*")
	if mark != "" { // an upload of parts was given it when it began
		o.UserMetadata = map[string]string{putMark: mark}
	}
	return o
}

// confirm finds out what became of an upload whose last request failed with err. Its
// answer may have been lost, and what was sent again meets the object that the first
// one made.
func (b *bucket) confirm(ctx context.Context, key, mark string, bytes int64, err error) error {
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	found, statErr := b.core.StatObject(ask, b.name, key, minio.StatObjectOptions{})
	switch {
	case statErr == nil && found.UserMetadata[putMark] == mark && found.Size == bytes:
		return nil
	case statErr == nil || minio.ToErrorResponse(statErr).StatusCode == http.StatusNotFound:
		return err
	}
	return errors.Join(unconfirmed(scheme+b.name+"/"+key, err), statErr)
}

// Put implements Target. It holds one part at a time; a backup of one part is one
// request.
func (b *bucket) Put(ctx context.Context, name string, content io.Reader) (int64, error) {
	key := b.prefix + name
	_, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err == nil {
		return 0, exists(b.path(name))
	}
	if f := b.fault(name, err); f.Reason != "no_backup" {
		return 0, f
	}
	part, err := b.nextPart(ctx, content)
	if err != nil {
		return 0, b.fault(name, err)
	}
	mark := rand.Text()
	if len(part) < b.part {
		n := int64(len(part))
		_, err := b.core.PutObject(ctx, b.name, key, bytes.NewReader(part), n, "", sum(part), onlyNew(mark))
		if err != nil {
			err = b.confirm(ctx, key, mark, n, err)
		}
		if err != nil {
			return 0, b.fault(name, err)
		}
		return n, nil
	}
	n, err := b.putParts(ctx, key, mark, part, content)
	if err != nil {
		return 0, b.fault(name, err)
	}
	return n, nil
}

// nextPart reads a whole part, or what is left; it is empty at the end.
func (b *bucket) nextPart(ctx context.Context, content io.Reader) ([]byte, error) {
	var buf bytes.Buffer
	_, err := io.CopyN(&buf, within{ctx, content}, int64(b.part))
	if err == io.EOF {
		err = nil
	}
	return buf.Bytes(), err
}

func sum(part []byte) string {
	h := sha256.Sum256(part)
	return hex.EncodeToString(h[:])
}

// putParts uploads in parts, which become the object with the last request. One
// that fails takes its parts along.
func (b *bucket) putParts(ctx context.Context, key, mark string, part []byte, content io.Reader) (n int64, err error) {
	id, err := b.core.NewMultipartUpload(ctx, b.name, key, minio.PutObjectOptions{UserMetadata: map[string]string{putMark: mark}})
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
			defer cancel()
			err = errors.Join(err, b.core.AbortMultipartUpload(tidy, b.name, key, id))
		}
	}()
	var parts []minio.CompletePart
	for len(part) > 0 {
		if len(parts) == maxParts {
			return 0, fault.New(fault.ResourceExhausted, "backup_too_large", "S3 takes %d parts of %d bytes, and the backup has more", maxParts, b.part)
		}
		done, err := b.core.PutObjectPart(ctx, b.name, key, id, len(parts)+1, bytes.NewReader(part), int64(len(part)),
			minio.PutObjectPartOptions{Sha256Hex: sum(part), DisableContentSha256: true})
		if err != nil {
			return 0, err
		}
		n += int64(len(part))
		parts = append(parts, minio.CompletePart{PartNumber: done.PartNumber, ETag: done.ETag})
		if part, err = b.nextPart(ctx, content); err != nil {
			return 0, err
		}
	}
	if _, err = b.core.CompleteMultipartUpload(ctx, b.name, key, id, parts, onlyNew("")); err != nil {
		err = b.confirm(ctx, key, mark, n, err)
	}
	return n, err
}

// Get implements Target.
func (b *bucket) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	var err error
	switch {
	case length == 0:
		return io.NopCloser(bytes.NewReader(nil)), nil
	case length > 0:
		err = o.SetRange(offset, offset+length-1)
	case offset > 0:
		err = o.SetRange(offset, 0) // to the end
	}
	if err != nil {
		return nil, b.fault(name, err)
	}
	r, _, _, err := b.core.GetObject(ctx, b.name, b.prefix+name, o)
	if err != nil {
		return nil, b.fault(name, err)
	}
	return r, nil
}

// List implements Target.
func (b *bucket) List(ctx context.Context) ([]Entry, error) {
	out := []Entry{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for o := range b.core.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if o.Err != nil {
			return nil, b.fault("", o.Err)
		}
		name := strings.TrimPrefix(o.Key, b.prefix)
		if strings.HasSuffix(name, Extension) && !strings.Contains(name, "/") {
			out = append(out, Entry{name, o.Size, o.LastModified.UTC(), false})
		}
	}
	return byName(out), nil
}

// Delete implements Target.
func (b *bucket) Delete(ctx context.Context, name string) error {
	key := b.prefix + name
	if _, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{}); err != nil {
		return b.fault(name, err)
	}
	if err := b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}); err != nil {
		return b.fault(name, err)
	}
	return nil
}

// fault turns what S3 says into the contract's codes.
func (b *bucket) fault(name string, err error) *fault.Error {
	if f := fault.From(err); f != nil {
		return f
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Cancelled, "cancelled", "the work was ended; there is no backup %s", b.path(name))
	}
	var said minio.ErrorResponse
	errors.As(err, &said)
	switch {
	case said.Code == "NoSuchBucket":
		return noPlace("bucket", b.name)
	case said.Code == "NoSuchKey", said.StatusCode == http.StatusNotFound:
		return noBackup(b.path(name))
	case said.StatusCode == http.StatusPreconditionFailed:
		return exists(b.path(name))
	case said.StatusCode == http.StatusForbidden:
		return fault.New(fault.PermissionDenied, "s3_refused", "S3 refuses %s: %s", b.path(name), said.Code)
	}
	return fault.New(fault.RecoveryRequired, "s3_failed", "S3 failed at %s: %v", b.path(name), err)
}
