// Package s3client connects to stores with the S3 protocol: it finds their address, region and keys
// where every S3 client looks for them.
package s3client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// getenv reads the variables that every S3 client reads; the S3 library reads those of the keys
// itself.
func getenv(name string) string { return os.Getenv(name) } //nolint:forbidigo // see above

// Endpoint is the address of a store.
type Endpoint struct {
	// URL has a scheme, http or https, and a host.
	URL *url.URL
	// Lookup tells where a request has the name of the bucket: in the path or in the host.
	Lookup minio.BucketLookupType
}

// FindEndpoint returns the endpoint of a store: the given address, such as
// https://store.example.com, or that of AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, or AWS.
func FindEndpoint(given string) (Endpoint, error) {
	origin := "the endpoint"
	if given == "" {
		given = cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"))
		origin = "AWS_ENDPOINT_URL"
	}
	lookup := minio.BucketLookupPath
	if given == "" {
		given, lookup = "https://s3.amazonaws.com", minio.BucketLookupAuto
	}

	u, err := url.Parse(given)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" {
		return Endpoint{}, errors.New("cannot use " + origin +
			": give an address such as https://store.example.com")
	}
	return Endpoint{u, lookup}, nil
}

// Address returns the endpoint as HOST:PORT, in lower case.
func (e Endpoint) Address() string {
	port := cmp.Or(e.URL.Port(), map[string]string{"https": "443", "http": "80"}[e.URL.Scheme])
	return strings.ToLower(e.URL.Hostname()) + ":" + port
}

// Options configure the client of a store.
type Options struct {
	// Region is the region of the bucket, or empty: that of AWS_REGION or AWS_DEFAULT_REGION, or
	// what the store reports.
	Region string
	// Transport sends the requests. It bounds the time of a connection without data.
	Transport http.RoundTripper
	// MaxAttempts is the number of attempts of a request, at least 1.
	MaxAttempts int
	// UsesRole also looks for the keys of the machine's role: those of AWS_ROLE_ARN, of a
	// container, or of the metadata service, whose private address an attacker may want to reach.
	UsesRole bool
}

// Connect returns a client of a store. It sends no request. The keys come from the usual variables
// and files; without any, only public objects can be read.
func (e Endpoint) Connect(o Options) (*minio.Client, error) {
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if o.UsesRole {
		providers = append(providers, &credentials.IAM{})
	}

	client, err := minio.New(e.URL.Host, &minio.Options{
		Creds: credentials.NewChainCredentials(providers), Secure: e.URL.Scheme == "https",
		Transport: o.Transport, BucketLookup: e.Lookup, MaxRetries: o.MaxAttempts,
		Region: cmp.Or(o.Region, getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use the store: %w", err)
	}
	return client, nil
}
