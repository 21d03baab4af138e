package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Limits on a file.
const (
	maxFile    = 1 << 20 // bytes
	maxServers = 50
)

// config is the entry of a server in a file.
type config struct {
	Type     string            `json:"type"` // "stdio", "http" or empty; by the other members then
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Folder   string            `json:"cwd"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`
}

// readConfig reads a file and returns its servers by name.
func readConfig(path string, getenv func(string) (string, bool)) (map[string]config, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the MCP servers: %w", err)
	}
	servers, err := parseConfig(data, getenv)
	if err != nil {
		return nil, fmt.Errorf("cannot use the MCP servers of %s: %w", path, err)
	}
	return servers, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return data, err
}

// parseConfig reads the member mcpServers, as for Claude and Cursor, or servers, as for VS Code. It
// ignores members of an entry that only other programs use.
func parseConfig(data []byte, getenv func(string) (string, bool)) (map[string]config, error) {
	var file struct {
		Claude map[string]config `json:"mcpServers"`
		VSCode map[string]config `json:"servers"`
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\uFEFF")), &file); err != nil {
		return nil, fmt.Errorf("it is not the expected JSON: %w", err)
	}
	servers := file.Claude
	if servers == nil {
		servers = file.VSCode
	}

	maps.DeleteFunc(servers, func(_ string, c config) bool { return c.Disabled })
	if len(servers) == 0 || len(servers) > maxServers {
		return nil, fmt.Errorf(`it names %d servers: name 1 to %d in the member "mcpServers"`,
			len(servers), maxServers)
	}

	for _, name := range slices.Sorted(maps.Keys(servers)) {
		c := servers[name]
		err := c.expand(getenv)
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", name, err)
		}
		servers[name] = c
	}
	return servers, nil
}

// check refuses entries that do not describe a server.
func (c *config) check() error {
	isLocal := c.Command != ""
	switch {
	case isLocal == (c.URL != ""):
		return errors.New(`give either "command", for a program, or "url", for a server`)
	case isLocal:
		return nil
	case c.Type == "sse":
		return errors.New("the old transport sse is not supported: give the address for streamable HTTP")
	}

	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("the url %q must begin with http:// or https://, and have a host and no user", c.URL)
	}
	return nil
}

// variable matches ${NAME}, VS Code's ${env:NAME}, and Claude Code's ${NAME:-default}.
var variable = lazyregexp.New(`\$\{([^}]*)\}`)

// expand substitutes environment variables in the strings.
func (c *config) expand(getenv func(string) (string, bool)) error {
	var missing []string
	put := func(text *string) {
		*text = variable.ReplaceAllStringFunc(*text, func(found string) string {
			name := strings.TrimPrefix(found[2:len(found)-1], "env:")
			name, standard, hasStandard := strings.Cut(name, ":-")
			value, ok := getenv(name)
			if !ok && !hasStandard {
				missing = append(missing, found)
			}
			if !ok {
				return standard
			}
			return value
		})
	}

	for _, text := range []*string{&c.Command, &c.Folder, &c.URL} {
		put(text)
	}

	for i := range c.Args {
		put(&c.Args[i])
	}
	for _, all := range []map[string]string{c.Env, c.Headers} {
		for key, value := range all {
			put(&value)
			all[key] = value
		}
	}

	if missing != nil {
		slices.Sort(missing)
		return fmt.Errorf("the environment has no %s", strings.Join(slices.Compact(missing), ", "))
	}
	return nil
}
