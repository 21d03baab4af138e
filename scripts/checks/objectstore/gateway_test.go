//go:build objectstore

// Package objectstore tests the objects of a bucket against real stores with the S3 protocol.
package objectstore

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/rlmhq/rlm/internal/keep/objects/s3"
)

// The environment of a process of this test that serves a folder, because a test that kills a store
// must not kill itself.
const (
	gatewayFolder  = "RLM_TEST_GATEWAY_FOLDER"
	gatewayAddress = "RLM_TEST_GATEWAY_ADDRESS"
	accessKey      = "test-key"
	secretKey      = "test-secret"
	bucket         = "objects"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(gatewayFolder); folder != "" {
		log.Fatal(serve(folder, os.Getenv(gatewayAddress)))
	}
	minio.DefaultRetryUnit, minio.DefaultRetryCap = 5*time.Millisecond, 50*time.Millisecond
	os.Exit(m.Run())
}

// serve serves the buckets in a folder until the process is killed.
func serve(folder, address string) error {
	root, besides := filepath.Join(folder, "buckets"), filepath.Join(folder, "metadata")
	for _, dir := range []string{root, besides} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}

	var about meta.MetadataStorer = meta.XattrMeta{}
	options := posix.PosixOpts{CopyObjectThreshold: 5 << 30} // bytes, as its program has it
	if err := (meta.XattrMeta{}).Test(root); err != nil {    // the file system has no such attributes
		sidecar, err := meta.NewSideCar(besides)
		if err != nil {
			return err
		}
		about, options.SideCarDir = sidecar, besides
	}
	backend, err := posix.New(root, about, options)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess: accessKey, RootUserSecret: secretKey, Ports: []string{address}, HealthPath: "/health",
		MaxConnections: 1000, MaxRequests: 500, MultipartMaxParts: 10_000, KeepAlive: true, Quiet: true,
	})
}

// gateway is a store in a process of its own.
type gateway struct {
	folder, address string
	process         *exec.Cmd
	output          bytes.Buffer
}

// startGateway starts a store with one bucket, and sets the keys in the environment.
func startGateway(t *testing.T) *gateway {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{folder: t.TempDir(), address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	setKeys(t)
	t.Cleanup(func() {
		g.kill(t)
		if t.Failed() {
			t.Logf("the store wrote:\n%s", g.output.Bytes())
		}
	})
	g.start(t)
	makeBucket(t, g.endpoint())
	return g
}

func setKeys(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": "",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "us-east-1",
	} {
		t.Setenv(name, value)
	}
}

// start starts the process and waits until it answers.
func (g *gateway) start(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g.process = exec.Command(program) // it ends with the test, or is killed before
	g.process.Env = append(os.Environ(), gatewayFolder+"="+g.folder, gatewayAddress+"="+g.address)
	g.process.Stdout, g.process.Stderr = &g.output, &g.output
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	for !isHealthy(t.Context(), g.address) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the store does not start")
		}
	}
}

func isHealthy(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// kill ends the process at once, whatever it does.
func (g *gateway) kill(t *testing.T) {
	t.Helper()
	if g.process == nil {
		return
	}
	if err := g.process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = g.process.Wait() // it was killed
	g.process = nil
}

// endpoint returns the address of the store with its scheme.
func (g *gateway) endpoint() string { return "http://" + g.address }

// path returns the file with the bytes of a key.
func (g *gateway) path(key string) string { return filepath.Join(g.folder, "buckets", bucket, key) }

// connectClient returns a client with rights that objects do not need.
func connectClient(t *testing.T, endpoint string) *minio.Client {
	t.Helper()
	scheme, address, _ := strings.Cut(endpoint, "://")
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1", Secure: scheme == "https",
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func makeBucket(t *testing.T, endpoint string) {
	t.Helper()
	if err := connectClient(t, endpoint).MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
}

// openObjects opens the objects of a bucket behind a prefix.
func openObjects(t *testing.T, endpoint, prefix string, o s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.Open(t.Context(), fmt.Sprintf("s3://%s/%s?endpoint=%s", bucket, prefix, endpoint), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
