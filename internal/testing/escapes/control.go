package escapes

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Control names the control of a case, which demonstrates where the attack succeeds. For a case
// without a control, it returns "none: " and the reason.
func (c Case) Control() string {
	shown := []string{c.nameBareControl()}
	for _, tier := range []string{"docker", "local"} {
		if layers := c.Layers(tier); layers != nil {
			shown = append(shown, tier+" without "+strings.Join(layers, ", "))
		}
	}
	if shown[0] == "" && len(shown) > 1 {
		shown = shown[1:]
	}
	if shown[0] == "" {
		return "none: " + c.keys["unsafe"]
	}

	return strings.Join(shown, "; ")
}

// nameBareControl names the control of a case outside any tier's wall, or returns an empty string.
func (c Case) nameBareControl() string {
	switch {
	case c.keys["unsafe"] != "":
		return ""
	case c.Class == "session":
		return "session without a keeper"
	case c.Class == "hostcalls":
		return "session without a limit"
	case c.Class == "amplification":
		return "naive decoder"
	}

	name := "CPython"
	if c.Then != "" {
		name = "two of CPython"
	}
	if c.Class == "egress" {
		name = "naive proxy"
	}
	if c.Class == "contexts" {
		name = "naive contexts"
	}
	if c.keys["one"] != "" {
		name = "CPython for both tenants"
	}
	if c.keys["root"] != "" {
		name += " as root"
	}
	if place, file, found := strings.Cut(c.keys["fake"], " "); found {
		name += " with a fake " + place + file
	}
	if c.keys["before"] != "" {
		name += ", prepared"
	}
	if c.keys["env"] != "" {
		name += " with " + c.keys["env"]
	}
	if c.keys["where"] != "" {
		name += " where " + c.keys["where"]
	}
	if c.keys["harm"] != "" {
		name += ": " + c.keys["harm"]
	}

	return name
}

// prepare returns a snippet of a case for an interpreter without a sandbox.
func (c Case) prepare(t *testing.T, source string, watch *canaries) string {
	t.Helper()
	if place, file, found := strings.Cut(c.keys["fake"], " "); found {
		source = strings.ReplaceAll(source, place, newFake(t, watch, file))
	}
	if c.Class == "contexts" || c.Class == "restart" {
		source = watch.setBareStage() + source
	}
	if c.keys["before"] != "" {
		source = c.keys["before"] + "\n" + source
	}
	return watch.fill(source)
}

// newFake creates a folder with a file that may be missing on this machine, and returns the
// folder's path. A name that ends in ".sock" becomes a socket; "root" becomes a link to the root.
func newFake(t *testing.T, watch *canaries, name string) string {
	t.Helper()
	dir := filepath.Join(watch.dir, "fake")
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755) //nolint:gosec // like the machine's
	switch {
	case strings.HasSuffix(name, ".sock"):
		l, failed := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
		if failed == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		err = errors.Join(err, failed)
	case name == "root":
		err = errors.Join(err, os.Symlink("/", path))
	default:
		err = errors.Join(err, os.WriteFile(path, []byte("a fake file"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}

	watch.before = watch.describeState(t)
	return dir + "/"
}
