package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// deployed returns the content of a file below deploy/.
func deployed(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkServe runs rlm serve --check with flags and a configuration file. Its model needs no server.
func checkServe(t *testing.T, config string, args []string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "config.yaml", config)
	writeFile(t, dir, "s.yaml", servedScript)
	all := append([]string{"serve", "--check", "--data", filepath.Join(dir, "data"), "--insecure-no-workers"}, args...)
	all = append(all, "--config", filepath.Join(dir, "config.yaml"), "--model", "scripted/s.yaml",
		"--sub-model", "scripted/s.yaml")
	key := exec.Command("rlm", "keys", "create", "alice", "--data", filepath.Join(dir, "data"))
	if out, err := key.CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	cmd := exec.Command("rlm", all...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "the server can start") {
		t.Errorf("%q: %s, %v", all, out, err)
	}
}

// without removes flags and their values from arguments.
func without(args []string, flags ...string) (left []string) {
	for i := 0; i < len(args); i++ {
		isOut := false
		for _, flag := range flags {
			isOut = isOut || args[i] == flag
		}
		if isOut {
			i++
			continue
		}
		left = append(left, args[i])
	}
	return left
}

// TestTheUnitOfSystemdStartsTheServer checks that systemd accepts the unit file, if systemd is
// installed, and that the command accepts its flags.
func TestTheUnitOfSystemdStartsTheServer(t *testing.T) {
	text := deployed(t, "rlm.service")
	known := "[Unit] Description Documentation Wants After [Service] ExecStart EnvironmentFile DynamicUser " +
		"StateDirectory StateDirectoryMode CacheDirectory Environment TimeoutStopSec Restart LimitNOFILE Delegate " +
		"DelegateSubgroup ExecStartPre ProtectSystem ProtectHome PrivateTmp NoNewPrivileges CapabilityBoundingSet " +
		"RestrictAddressFamilies LockPersonality UMask [Install] WantedBy"
	values := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		if strings.Contains(name, " ") || !strings.Contains(" "+known+" ", " "+name+" ") {
			t.Errorf("unknown line %q", line)
		}
		values[name] = value
	}
	words := strings.Fields(values["ExecStart"])
	if len(words) < 2 || words[0] != "/usr/local/bin/rlm" || words[1] != "serve" {
		t.Fatalf("the unit starts %q", words)
	}
	checkServe(t, deployed(t, "compose", "config.yaml"), without(words[2:], "--data", "--config"))
	if values["Restart"] != "on-failure" || values["UMask"] != "0077" || values["NoNewPrivileges"] != "yes" {
		t.Errorf("the unit has %v", values)
	}
	verifyUnit(t, text)
}

// verifyUnit checks the unit with systemd, if that is installed. Older versions do not support all
// of its keys.
func verifyUnit(t *testing.T, text string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("systemd-analyze is not here")
		return
	}
	dir := t.TempDir()
	text = strings.Replace(text, "/usr/local/bin/rlm", "/bin/true", 1)
	text = strings.Replace(text, "EnvironmentFile=/etc/rlm/keys.env", "EnvironmentFile=/dev/null", 1)
	verify := func() (string, error) {
		writeFile(t, dir, "rlm.service", text)
		cmd := exec.Command("systemd-analyze", "verify", "--man=no", filepath.Join(dir, "rlm.service"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := verify()
	if strings.Contains(out, "Unknown key 'DelegateSubgroup'") { // before systemd 254
		text = strings.Replace(text, "DelegateSubgroup=server\n", "", 1)
		out, err = verify()
	}
	if out != "" || err != nil {
		t.Errorf("systemd says: %s, %v", out, err)
	}
}

// TestComposeStartsTheServer checks that the command accepts the flags and settings of the compose
// file, and that each mounted file exists.
func TestComposeStartsTheServer(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image       string   `yaml:"image"`
			Command     any      `yaml:"command"`
			EnvFile     string   `yaml:"env_file"`
			Volumes     []string `yaml:"volumes"`
			Ports       []string `yaml:"ports"`
			Secrets     []string `yaml:"secrets"`
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			SecurityOpt []string `yaml:"security_opt"`
		} `yaml:"services"`
		Secrets map[string]struct{ File string } `yaml:"secrets"`
		Volumes map[string]any                   `yaml:"volumes"`
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose", "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	server := file.Services["rlm"]
	command, _ := server.Command.(string)
	words := strings.Fields(command)
	if len(words) == 0 || words[0] != "serve" {
		t.Fatalf("the server is started by %q", command)
	}
	checkServe(t, deployed(t, "compose", "config.yaml"),
		without(words[1:], "--config"))
	if !server.ReadOnly || len(server.CapDrop) != 1 || server.CapDrop[0] != "ALL" || len(server.SecurityOpt) != 1 {
		t.Errorf("the server's container is open: %+v", server)
	}

	for name, service := range file.Services {
		if !strings.Contains(service.Image, ":") && name != "rlm" {
			t.Errorf("the image of %s has no version", name)
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s serves other machines: %s", name, port)
			}
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if path, isPath := strings.CutPrefix(source, "./"); isPath {
				if _, err := os.Stat(filepath.Join("..", "..", "deploy", "compose", path)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else if _, known := file.Volumes[source]; !known {
				t.Errorf("%s: there is no volume %s", name, source)
			}
		}
		for _, secret := range service.Secrets {
			if file.Secrets[secret].File == "" {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
	}
	if file.Services["rlm"].EnvFile != "rlm.env" || deployed(t, "compose", "rlm.env.example") == "" {
		t.Error("the keys of models' servers have no file")
	}
}
