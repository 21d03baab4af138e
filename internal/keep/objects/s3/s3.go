// Package s3 keeps objects in a bucket of a store with the S3 protocol.
//
// The key of an object is its digest behind a prefix, its bytes are stored as they are, and its
// metadata has the digest too. The user of the keys must be allowed to read, write, delete and list
// objects of the bucket.
package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/data/remote/idleconn"
	"github.com/rlmhq/rlm/internal/data/remote/s3client"
	"github.com/rlmhq/rlm/internal/keep/objects"
)

// Options configure a store. The zero value is usable.
type Options struct {
	// SpoolDir is the folder for temporary files of Put, or empty: that of the system. It needs
	// space for all objects above 8 MiB that are being put.
	SpoolDir string
	// Silence is the time without any progress after which a call fails, or 0: two minutes. Each of
	// its requests is tried again after half of it.
	Silence time.Duration
}

const (
	defaultSilence = 2 * time.Minute
	dialTime       = 15 * time.Second
	maxAttempts    = 8        // of a request: about six seconds of refusals
	maxHead        = 64 << 10 // bytes of headers
	keptConns      = 32       // for the next requests
)

// Store keeps objects in a bucket. It implements [objects.Store]. Create it with [Open], and Close
// it.
type Store struct {
	client    *minio.Client
	transport *http.Transport
	endpoint  string // for errors
	bucket    string
	prefix    string // of all keys: empty, or with a slash at the end
	options   Options
}

var _ objects.Store = (*Store)(nil)

// Open connects to the store at an address such as
//
//	s3://BUCKET/PREFIX?endpoint=https://store.example.com&region=eu-central-1&style=path
//
// and checks that the bucket exists. Prefix and parameters are optional. Without an endpoint, the
// store is that of AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or AWS; without a region, that of
// AWS_REGION. The style, path or host, tells where requests name the bucket. Keys come from the
// usual variables, the shared file or the role of the machine, and never from the address.
func Open(ctx context.Context, address string, o Options) (*Store, error) {
	s, err := connect(address, o)
	if err != nil {
		return nil, err
	}
	if err := s.checkBucket(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect makes a store without a request.
func connect(address string, o Options) (*Store, error) {
	refuse := func(why string) (*Store, error) { // without the address, which may have a password
		return nil, errors.New("cannot use the address of a bucket: " + why)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.Port() != "" || u.Fragment != "" {
		return refuse("write s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION")
	}
	if u.User != nil {
		return refuse("it has a password: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" && (path.Clean(prefix) != prefix || strings.HasPrefix(prefix, "..")) {
		return refuse("its prefix must have no empty part, and neither . nor ..")
	}

	given, err := parseParameters(u.RawQuery)
	if err != nil {
		return refuse(err.Error())
	}

	endpoint, err := s3client.FindEndpoint(given["endpoint"])
	if err != nil {
		return nil, err
	}
	switch given["style"] {
	case "path":
		endpoint.Lookup = minio.BucketLookupPath
	case "host":
		endpoint.Lookup = minio.BucketLookupDNS
	}

	o.Silence = cmp.Or(o.Silence, defaultSilence)
	transport := newTransport(o.Silence)
	client, err := endpoint.Connect(s3client.Options{
		Region: given["region"], Transport: watcher{transport}, MaxAttempts: maxAttempts,
		UsesRole: true,
	})
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	return &Store{client, transport, endpoint.URL.String(), u.Host, prefix, o}, nil
}

// parseParameters reads the part of an address after the question mark.
func parseParameters(query string) (map[string]string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("its parameters are malformed: write %26 for & in a value")
	}

	given := map[string]string{}
	for name, all := range values {
		switch {
		case name != "endpoint" && name != "region" && name != "style":
			return nil, fmt.Errorf("it has the unknown parameter %.40q: "+
				"use endpoint, region and style", name)
		case len(all) > 1 || all[0] == "":
			return nil, fmt.Errorf("it must give %s once, and not empty", name)
		case name == "style" && all[0] != "path" && all[0] != "host":
			return nil, fmt.Errorf("its style %.40q is neither path nor host", all[0])
		}
		given[name] = all[0]
	}
	return given, nil
}

// newTransport returns a transport whose connections end after half of the silence of a call, so
// that a request has a second attempt.
func newTransport(silence time.Duration) *http.Transport {
	idle := silence / 2
	dialer := net.Dialer{Timeout: min(dialTime, idle)}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return idleconn.Limit(conn, idle), nil
		},
		TLSHandshakeTimeout: min(dialTime, idle), MaxResponseHeaderBytes: maxHead,
		DisableCompression: true, MaxIdleConnsPerHost: keptConns, IdleConnTimeout: idle / 2,
	}
}

// checkBucket returns an error unless the bucket exists.
func (s *Store) checkBucket(ctx context.Context) error {
	ctx, call := s.begin(ctx)
	defer call.end()
	exists, err := s.client.BucketExists(ctx, s.bucket)
	if err == nil && !exists {
		err = minio.ErrorResponse{Code: minio.NoSuchBucket, StatusCode: http.StatusNotFound}
	}
	return s.explain(ctx, "open the bucket", "", err)
}

// Close closes idle connections.
func (s *Store) Close() { s.transport.CloseIdleConnections() }

// key returns the key of an object.
func (s *Store) key(digest string) string { return s.prefix + digest }

// Stat implements [objects.Store]. The time has whole seconds.
func (s *Store) Stat(ctx context.Context, digest string) (objects.Object, error) {
	if err := check(ctx, digest); err != nil {
		return objects.Object{}, err
	}

	ctx, call := s.begin(ctx)
	defer call.end()
	info, err := s.client.StatObject(ctx, s.bucket, s.key(digest), minio.StatObjectOptions{})
	if err != nil {
		return objects.Object{}, s.explain(ctx, "find", digest, err)
	}
	return objects.Object{Digest: digest, Size: info.Size, Stored: info.LastModified}, nil
}

// Remove implements [objects.Store].
func (s *Store) Remove(ctx context.Context, digest string) error {
	if err := check(ctx, digest); err != nil {
		return err
	}
	ctx, call := s.begin(ctx)
	defer call.end()
	err := s.client.RemoveObject(ctx, s.bucket, s.key(digest), minio.RemoveObjectOptions{})

	err = s.explain(ctx, "remove", digest, err)
	if errors.Is(err, objects.ErrNotFound) {
		return nil
	}
	return err
}

// check refuses an invalid digest, and a call whose context has ended.
func check(ctx context.Context, digest string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return objects.CheckDigest(digest)
}

// leftOver is the age from which an upload is assumed to have no writer.
const leftOver = 24 * time.Hour

// List implements [objects.Store].
//
// It also removes the uploads of writers that crashed more than a day ago, because stores keep and
// bill their parts for ever. Whoever collects unused objects lists them first, without knowing what
// kind of store it is, so no other method would be called.
func (s *Store) List(ctx context.Context, each func(objects.Object) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, call := s.begin(ctx)
	defer call.end()

	last := ""
	options := minio.ListObjectsOptions{Prefix: s.prefix}
	for info := range s.client.ListObjectsIter(ctx, s.bucket, options) {
		if info.Err != nil {
			return s.explain(ctx, "list the objects of", "", info.Err)
		}
		digest := strings.TrimPrefix(info.Key, s.prefix)
		if !objects.IsDigest(digest) {
			continue
		}
		if digest <= last {
			err := errors.New("the store does not sort keys: use another kind of bucket")
			return s.explain(ctx, "list the objects of", "", err)
		}
		last = digest

		call.pause() // the caller may take its time
		err := each(objects.Object{Digest: digest, Size: info.Size, Stored: info.LastModified})
		if err != nil {
			return err
		}
		call.progress()
	}
	if ctx.Err() != nil { // it ends the loop without an error
		return s.explain(ctx, "list the objects of", "", ctx.Err())
	}
	s.removeLeftOvers(ctx, call)
	return nil
}

// removeLeftOvers ends old uploads. Not every store can list them. Without success, the next List
// tries again.
func (s *Store) removeLeftOvers(ctx context.Context, call *call) {
	core := minio.Core{Client: s.client}
	key, id := "", ""
	for {
		found, err := core.ListMultipartUploads(ctx, s.bucket, s.prefix, key, id, "", 0)
		if err != nil {
			return
		}

		call.progress()
		for _, upload := range found.Uploads {
			isOurs := objects.IsDigest(strings.TrimPrefix(upload.Key, s.prefix))
			if isOurs && time.Since(upload.Initiated) > leftOver {
				_ = core.AbortMultipartUpload(ctx, s.bucket, upload.Key, upload.UploadID)
				call.progress()
			}
		}

		if !found.IsTruncated || found.NextKeyMarker == "" {
			return
		}
		key, id = found.NextKeyMarker, found.NextUploadIDMarker
	}
}

// Open implements [objects.Store]. If the connection breaks, the reader resumes.
func (s *Store) Open(ctx context.Context, digest string) (io.ReadCloser, error) {
	if err := check(ctx, digest); err != nil {
		return nil, err
	}

	ctx, call := s.begin(ctx)
	from := &source{ctx: ctx, store: s, call: call, key: s.key(digest)}
	size, err := from.open()
	if err != nil {
		err = s.explain(ctx, "open", digest, err)
		call.end()
		return nil, err
	}

	call.pause()
	o := objects.Object{Digest: digest, Size: size}
	return &object{source: from, digest: digest, bytes: objects.Verify(from, o)}, nil
}
