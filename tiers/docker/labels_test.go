package docker_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// TestLabelsOfASessionReachItsContainer finds the container by a label that no other session
// has.
func TestLabelsOfASessionReachItsContainer(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	engine, err := rlm.New(rlm.Options{Tiers: []tiers.Tier{tier}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	tenant := "acme-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	session, err := engine.Open(t.Context(), rlm.SessionConfig{
		Labels: map[string]string{"tenant": tenant, "request": "42"},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.Run(t.Context(), "print(6 * 7)")
	if err != nil || result.Tier != docker.Name || result.Stdout != "42\n" {
		t.Fatalf("%+v, %v", result, err)
	}

	client, err := dockerapi.New(os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, err := client.List(context.Background(), map[string]string{"rlm.label.tenant": tenant})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Labels["rlm.label.request"] != "42" ||
		found[0].Labels["rlm.tier"] != docker.Name {
		t.Errorf("found %+v, want one container with the labels of the session", found)
	}
}
