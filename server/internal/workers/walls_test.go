//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// secret is a value that must not reach any worker.
const secret = "sk-not-for-workers"

// TestANativeAttackReachesNothing performs in the worker what an attacker could do after breaking
// out of the WebAssembly, with direct system calls.
func TestANativeAttackReachesNothing(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", secret)
	folder := t.TempDir()
	store := filepath.Join(folder, "store")
	if err := os.WriteFile(store, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	text := bigtext.FromBytes("a", []byte("the context"))
	box := open(t, openTier(t, Options{}), tiers.Config{Inputs: []tiers.Input{{Text: text}}}).(*sandbox)
	mustPrint(t, box, "print(context)", "the context\n")

	parent := os.Getpid()
	denied := []string{"operation not permitted", "permission denied", "no such process", "function not implemented"}
	for _, order := range []string{
		"read " + store, "list " + folder, "list /", "write " + store, "read /proc/self/environ",
		fmt.Sprintf("read /proc/%d/environ", parent), fmt.Sprintf("read /proc/%d/mem", parent),
		"read /proc/1/environ", "read /etc/passwd", "read /proc/self/exe", "execute /bin/sh", "clone",
		fmt.Sprint("signal ", parent), "signal 1", fmt.Sprint("trace ", parent), "trace 1",
		fmt.Sprint("peek ", parent), "peek 1", "keyring",
		fmt.Sprint("socket ", unix.AF_INET, unix.SOCK_STREAM), fmt.Sprint("socket ", unix.AF_INET6, unix.SOCK_DGRAM),
		fmt.Sprint("socket ", unix.AF_UNIX, unix.SOCK_STREAM), fmt.Sprint("socket ", unix.AF_NETLINK, unix.SOCK_RAW),
		fmt.Sprint("socket ", unix.AF_VSOCK, unix.SOCK_STREAM),
	} {
		said, err := box.Attack(order)
		if err != nil {
			t.Fatalf("%s: %v", order, err)
		}
		isDenied := false
		for _, text := range denied {
			isDenied = isDenied || strings.Contains(said, text)
		}
		if !isDenied {
			t.Errorf("%s: %s", order, said)
		}
	}

	for _, order := range []string{"environment", "arguments"} {
		said, err := box.Attack(order)
		if err != nil || strings.Contains(said, secret) || strings.Contains(said, "PATH=") {
			t.Errorf("%s: %s, %v", order, said, err)
		}
	}
	if said, err := box.Attack("writable"); err != nil || said != "" {
		t.Errorf("the worker can write to files: %s, %v", said, err)
	}

	mustPrint(t, box, "print(1)", "1\n")
}

// TestAWorkerHasFewDescriptors checks that a worker has only the descriptors that it needs, and
// none of the parent's, such as a listener.
func TestAWorkerHasFewDescriptors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	box := open(t, openTier(t, Options{}), tiers.Config{}).(*sandbox)
	said, err := box.Attack("descriptors")
	if err != nil {
		t.Fatal(err)
	}

	sockets := 0
	for _, one := range strings.Fields(said) {
		if strings.Contains(one, fmt.Sprintf(":%o:", unix.S_IFSOCK)) {
			sockets++
		}
	}
	// The sockets are the connection, and the socket for files with its first copy.
	if sockets > 3 || len(strings.Fields(said)) > 16 {
		t.Errorf("the worker has %d sockets: %s", sockets, said)
	}
}

// TestTenantsDoNotShareWorkers checks that sessions of two tenants are in different workers.
func TestTenantsDoNotShareWorkers(t *testing.T) {
	tier := openTier(t, Options{})
	label := func(name string) tiers.Config {
		return tiers.Config{Labels: map[string]string{"tenant": name}}
	}
	a, b := open(t, tier, label("a")).(*sandbox), open(t, tier, label("b")).(*sandbox)
	again := open(t, tier, label("a")).(*sandbox)
	if a.worker == b.worker || a.worker != again.worker {
		t.Errorf("workers %p of a, %p of b, %p of a again", a.worker, b.worker, again.worker)
	}

	shared := openTier(t, Options{ShareWorkers: true})
	a, b = open(t, shared, label("a")).(*sandbox), open(t, shared, label("b")).(*sandbox)
	if a.worker != b.worker {
		t.Error("with ShareWorkers, tenants have workers of their own")
	}
}

// TestAWithheldAnswerEndsTheWorker checks that the parent waits only a limited time for the end of
// a cancelled request.
func TestAWithheldAnswerEndsTheWorker(t *testing.T) {
	t.Parallel()
	box := open(t, openTier(t, Options{}), tiers.Config{}).(*sandbox)
	runSnippet(t, box, "x = 1")
	w := box.worker
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.callToEnd(ctx, "withhold", nil, &attackResult{}) }()
	for said := ""; said != "true"; time.Sleep(time.Millisecond) {
		var err error
		if said, err = box.Attack("withholds"); err != nil {
			t.Fatal(err)
		}
	}

	cancel()
	err := <-ended
	<-w.gone
	if cause, why := w.why(); !errors.Is(err, context.Canceled) || cause != CauseSilent {
		t.Errorf("%v; the worker ended with %v, %s", err, cause, why)
	}
}
