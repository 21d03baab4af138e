package docker_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// TestLabelsOfASessionReachItsContainer checks that a container can be found by a label that no
// other session has.
func TestLabelsOfASessionReachItsContainer(t *testing.T) {
	t.Parallel()
	tenant := "acme-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{
		Labels: map[string]string{"tenant": tenant, "request": "42"},
	})
	if r := run(t, b, "print(6 * 7)"); r.Stdout != "42\n" {
		t.Fatalf("%s %q %+v", r.Status, r.Stdout, r.Exception)
	}

	client, err := dockerapi.New(os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, err := client.List(t.Context(), map[string]string{"rlm.label.tenant": tenant})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Labels["rlm.label.request"] != "42" ||
		found[0].Labels["rlm.tier"] != docker.Name {
		t.Errorf("found %+v, want one container with the labels of the session", found)
	}
}
