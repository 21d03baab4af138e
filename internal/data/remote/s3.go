package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/data/remote/s3client"
)

// Bucket is a bucket of an S3-compatible store.
type Bucket struct {
	name  string
	store *minio.Client
}

// maxObjects bounds the objects with a prefix.
const maxObjects = 1_000_000

// OpenBucket connects to the store configured in the environment: AWS, or AWS_ENDPOINT_URL_S3 or
// AWS_ENDPOINT_URL. The keys come from the usual variables and files; without any, only public
// objects can be read. It returns the bucket and the key of an address.
func (c *Client) OpenBucket(address string) (bucket *Bucket, key string, err error) {
	_, rest, _ := strings.Cut(address, "://")
	name, key, _ := strings.Cut(rest, "/")
	if name == "" {
		return nil, "", errors.New("the name of the bucket is missing: write s3://BUCKET/KEY")
	}

	endpoint, err := s3client.FindEndpoint("")
	if err != nil {
		return nil, "", err
	}
	if len(c.servers) > 0 {
		if err := c.check(endpoint.URL); err != nil {
			return nil, "", err
		}
	}
	c.trusted = append(c.trusted, endpoint.Address()) // named by the user's own environment

	store, err := endpoint.Connect(s3client.Options{Transport: c.transport, MaxAttempts: maxAttempts})
	if err != nil {
		return nil, "", err
	}
	return &Bucket{name, store}, key, nil
}

// Open opens an object.
func (b *Bucket) Open(ctx context.Context, key string) (*File, error) {
	f := &File{ctx: ctx, Name: path.Base(key), attempts: maxAttempts}
	f.reopen = func(ctx context.Context, at int64) (*http.Response, error) {
		return b.get(ctx, key, at, f.version)
	}
	if err := f.begin(); err != nil {
		return nil, err
	}
	return f, nil
}

// get requests the bytes of an object starting at offset at.
func (b *Bucket) get(ctx context.Context, key string, at int64, version string) (*http.Response, error) {
	var o minio.GetObjectOptions
	if at > 0 {
		if err := errors.Join(o.SetRange(at, 0), o.SetMatchETag(strings.Trim(version, `"`))); err != nil {
			return nil, err
		}
	}
	core := minio.Core{Client: b.store}
	body, about, head, err := core.GetObject(ctx, b.name, key, o)
	if err != nil {
		return nil, explainStore(err)
	}

	answer := &http.Response{StatusCode: http.StatusOK, Body: body, Header: head, ContentLength: about.Size}
	if at > 0 {
		answer.StatusCode = http.StatusPartialContent
	}
	return answer, nil
}

// explainStore converts the error of a store to one of a server.
func explainStore(err error) error {
	said := minio.ToErrorResponse(err)
	switch {
	case said.Code == "NoSuchBucket":
		return errors.New("the store has no such bucket")
	case said.StatusCode != 0:
		return &statusError{said.StatusCode}
	}
	return hideQuery(err)
}

// Object is an object of a bucket.
type Object struct {
	Key  string
	Size int64
}

// List returns the objects with a key prefix, excluding folders.
func (b *Bucket) List(ctx context.Context, prefix string) (list []Object, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for found := range b.store.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		switch {
		case found.Err != nil:
			return nil, explainStore(found.Err)
		case strings.HasSuffix(found.Key, "/"):
			continue
		case len(list) >= maxObjects:
			return nil, fmt.Errorf("more than %d objects begin like this: give a longer prefix", maxObjects)
		}
		list = append(list, Object{found.Key, found.Size})
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

var _ io.ReadCloser = (*File)(nil)
