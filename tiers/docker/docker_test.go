package docker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestMain(m *testing.M) {
	if os.Getenv(abandonEnv) != "" {
		abandon()
		return
	}
	// Tests spend more time waiting for containers than computing. A flag on the command line takes
	// precedence.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if left := orphans(); len(left) > 0 && code == 0 {
			fmt.Println("containers are left after all tests:", left)
			code = 1
		}
		os.Exit(code)
	}))
}

// orphans returns the containers of this process.
func orphans() []string {
	client, err := dockerapi.New(os.Getenv("DOCKER_HOST"))
	if err != nil {
		return nil // there is no daemon to test with
	}
	defer func() { _ = client.Close() }() // only frees connections
	found, err := client.List(context.Background(), map[string]string{"rlm.tier": docker.Name})
	if err != nil {
		return nil // as above
	}
	var left []string
	for _, c := range found {
		if strings.Contains(c.Labels["rlm.owner"], fmt.Sprintf("/%d/", os.Getpid())) {
			left = append(left, c.ID)
		}
	}
	return left
}

// newTier returns a tier that is closed at the end of the test.
func newTier(tb testing.TB, options docker.Options) *docker.Tier {
	tb.Helper()
	tier := docker.New(options).(*docker.Tier)
	tb.Cleanup(func() {
		if err := tier.Close(); err != nil {
			tb.Error(err)
		}
	})
	return tier
}

// usual returns a tier on the daemon that DOCKER_HOST names, or the system's daemon.
func usual(tb testing.TB, options docker.Options) *docker.Tier {
	tb.Helper()
	skip.Short(tb, "it starts containers")
	options.Host = os.Getenv("DOCKER_HOST")
	tier := newTier(tb, options)
	err := tier.Probe(tb.Context())
	if lacks := tier.Info().Lacks[tiers.Python]; lacks != "" {
		err = errors.Join(err, errors.New(lacks))
	}
	tiertest.Require(tb, docker.Name, err)
	return tier
}

func TestSuite(t *testing.T) {
	tiersuite.Run(t, usual(t, docker.Options{}), tiersuite.Options{
		Parallel: true, ShareSandboxes: true, KnownGuest: true, KnownProcess: true,
		StopAfter: time.Second, Sandboxes: 24,
	})
}

func TestLongTexts(t *testing.T) { tiersuite.LongTexts(t, usual(t, docker.Options{Warm: -1})) }

func TestEgress(t *testing.T) { tiersuite.Egress(t, usual(t, docker.Options{Warm: -1})) }

// box returns a sandbox that is closed at the end of the test.
func box(tb testing.TB, tier tiers.Tier, cfg tiers.Config) tiers.Sandbox {
	tb.Helper()
	b, err := tier.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

func run(tb testing.TB, b tiers.Sandbox, source string) tiers.Result {
	tb.Helper()
	r, err := b.Run(context.WithoutCancel(tb.Context()), tiers.Job{Source: source})
	if err != nil {
		tb.Fatalf("%s: %v", source, err)
	}
	return r
}

func TestNumPyRuns(t *testing.T) {
	t.Parallel()
	b := box(t, usual(t, docker.Options{}), tiers.Config{})
	if r := run(t, b, "import numpy as np\nprint(np.arange(10).sum())"); r.Stdout != "45\n" {
		t.Errorf("%s %q %q %+v", r.Status, r.Stdout, r.Stderr, r.Exception)
	}
	if r := run(t, b, "print(np.ones(3))"); r.Stdout != "[1. 1. 1.]\n" {
		t.Errorf("%s %q %q %+v", r.Status, r.Stdout, r.Stderr, r.Exception)
	}
}
