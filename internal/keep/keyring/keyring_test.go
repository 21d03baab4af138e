package keyring

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// without hides the programs of the system's keyring.
func without(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
}

func TestKeysAreKeptInAPrivateFile(t *testing.T) {
	without(t)
	ring := Ring{filepath.Join(t.TempDir(), "a", "keys.json")}
	for _, provider := range []string{"openai", "groq"} {
		place, err := ring.Set(t.Context(), provider, "sk-"+provider, false)
		if err != nil || place != ring.File {
			t.Fatalf("%s: kept in %q, %v", provider, place, err)
		}
	}

	key, place, err := ring.Get(t.Context(), "groq")
	if key != "sk-groq" || place != ring.File || err != nil {
		t.Errorf("got %q from %q, %v", key, place, err)
	}
	if key, _, err := ring.Get(t.Context(), "mistral"); key != "" || err != nil {
		t.Errorf("a key that is not kept: %q, %v", key, err)
	}
	info, err := os.Stat(ring.File)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}

	if found, err := ring.Remove(t.Context(), "openai"); !found || err != nil {
		t.Errorf("found: %v, %v", found, err)
	}
	if found, err := ring.Remove(t.Context(), "openai"); found || err != nil {
		t.Errorf("found again: %v, %v", found, err)
	}
	if list, err := ring.List(); len(list) != 1 || list[0] != (Entry{"groq", ring.File}) || err != nil {
		t.Errorf("the list is %v, %v", list, err)
	}
}

func TestBadKeysAreRefusedWithoutShowingThem(t *testing.T) {
	for _, key := range []string{"", "two words", "line\nline", "schlüssel", strings.Repeat("x", MaxKey+1)} {
		err := Check(key)
		if err == nil || len(key) > 8 && strings.Contains(err.Error(), key) {
			t.Errorf("%.20q: got %v", key, err)
		}
	}
}

func TestAFileThatIsNotPrivateOrDamagedIsRefused(t *testing.T) {
	without(t)
	const good = `{"version": 1, "keys": {"openai": {"in": "file", "key": "sk-secret"}}}`
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		says       string
	}{
		{"private", good, 0o600, ""},
		{"read only", good, 0o400, ""},
		{"others may read it", good, 0o644, "run chmod 600"},
		{"the group may write it", good, 0o620, "run chmod 600"},
		{"not JSON", "sk-secret", 0o600, "not a file of rlm keys set"},
		{"an unknown member", `{"version": 1, "kees": {}}`, 0o600, "not a file of rlm keys set"},
		{"a later version", `{"version": 2, "keys": {}}`, 0o600, "version 2"},
		{"two values", good + good, 0o600, "more than one"},
		{"an unknown place", `{"version": 1, "keys": {"x": {"in": "cloud"}}}`, 0o600, "damaged"},
		{"a key with spaces", `{"version": 1, "keys": {"x": {"in": "file", "key": "sk secret"}}}`, 0o600, "damaged"},
		{"too long", good + strings.Repeat(" ", maxFile), 0o600, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.says == "run chmod 600" {
				t.Skip("Windows has no such modes")
			}
			ring := Ring{filepath.Join(t.TempDir(), "keys.json")}
			if err := os.WriteFile(ring.File, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(ring.File, c.mode); err != nil { // despite any umask
				t.Fatal(err)
			}

			_, _, err := ring.Get(t.Context(), "openai")
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
			_, err = ring.Set(t.Context(), "openai", "sk-other", false)
			after, _ := os.ReadFile(ring.File)
			if err == nil || string(after) != c.text {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

// fake adds a program to the PATH. The program keeps keys in one file and its arguments in another.
func fake(t *testing.T, name, script string) (dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no shell")
	}
	dir = t.TempDir()
	text := "#!/bin/sh\ncd " + dir + "\necho \"$@\" >>arguments\n" + script
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

func TestKeysReachProgramsThroughStdin(t *testing.T) {
	const key = "sk-a_b.c/d+e=1"
	for _, c := range []struct {
		program
		script string
	}{
		{secretTool, "case $1 in store) cat >key;; lookup) cat key;; clear) rm key;; esac"},
		{security, `case $1 in -i) read -r line; echo "${line##* }" >key;;
			find*) cat key;; delete*) rm key;; esac`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fake(t, c.name, c.script)
			if err := c.store(t.Context(), "openai", key); err != nil {
				t.Fatal(err)
			}
			if got, err := c.lookUp(t.Context(), "openai"); got != key || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if err := c.remove(t.Context(), "openai"); err != nil {
				t.Error(err)
			}
			if _, err := c.lookUp(t.Context(), "openai"); err == nil {
				t.Error("a removed key is there")
			}

			arguments, err := os.ReadFile(filepath.Join(dir, "arguments"))
			if err != nil || strings.Contains(string(arguments), key) {
				t.Errorf("the arguments are %s, %v", arguments, err)
			}
		})
	}
}

func TestAKeyThatACommandLineCouldMisreadStaysInTheFile(t *testing.T) {
	for _, key := range []string{"a'b", `a"b`, `a\b`, "a;b", "a$b"} {
		if _, _, ok := security.storing("openai", key); ok {
			t.Errorf("%q would be stored", key)
		}
	}
}

func TestAProgramThatForgetsIsNotTrusted(t *testing.T) {
	fake(t, secretTool.name, "cat >/dev/null; echo another")
	if err := secretTool.store(t.Context(), "openai", "sk-key"); err == nil {
		t.Error("it stored another key")
	}
}

func TestAFloodOfOutputIsBounded(t *testing.T) {
	fake(t, secretTool.name, "head -c 1000000 /dev/zero | tr '\\0' x")
	if _, err := secretTool.lookUp(t.Context(), "openai"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version": 1, "keys": {"openai": {"in": "file", "key": "sk"}}}`))
	f.Add([]byte(`{"version": 1, "keys": {"groq": {"in": "keyring"}}}`))
	f.Add([]byte(`{"version": 1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := decode(text)
		if err != nil {
			return
		}
		for provider, e := range all {
			if e.In == inFile && Check(e.Key) != nil || e.In == inSystem && e.Key != "" {
				t.Errorf("%q has %+v", provider, e)
			}
		}
	})
}
