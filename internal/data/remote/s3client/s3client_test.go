package s3client_test

import (
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/data/remote/s3client"
)

func TestTheEndpointIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		given, ofS3, ofAll string
		want               string // HOST:PORT, or a part of the error
		lookup             minio.BucketLookupType
	}{
		"AWS":                  {"", "", "", "s3.amazonaws.com:443", minio.BucketLookupAuto},
		"the given one":        {"http://Given:7070", "https://b", "https://c", "given:7070", minio.BucketLookupPath},
		"the variable of S3":   {"", "https://b", "https://c", "b:443", minio.BucketLookupPath},
		"the variable of all":  {"", "", "http://c/", "c:80", minio.BucketLookupPath},
		"no address":           {"given", "", "", "cannot use the endpoint: give", 0},
		"another scheme":       {"ftp://given", "", "", "cannot use the endpoint: give", 0},
		"a path":               {"https://given/a", "", "", "cannot use the endpoint: give", 0},
		"a password":           {"https://u:secret@given", "", "", "cannot use the endpoint: give", 0},
		"a variable of no use": {"", "b", "", "cannot use AWS_ENDPOINT_URL: give", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL_S3", c.ofS3)
			t.Setenv("AWS_ENDPOINT_URL", c.ofAll)
			e, err := s3client.FindEndpoint(c.given)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
					t.Error(err)
				}
				return
			}
			if e.Address() != c.want || e.Lookup != c.lookup {
				t.Errorf("%s, %v, want %s, %v", e.Address(), e.Lookup, c.want, c.lookup)
			}
			if _, err := e.Connect(s3client.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
}
