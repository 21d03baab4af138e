package codecache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlmhq/rlm/internal/machine/attached"
)

// seven is a module whose function f returns 7.
var seven = append(bytes.Clone(emptyModule),
	1, 5, 1, 0x60, 0, 1, 0x7f, // its type
	3, 2, 1, 0,
	7, 5, 1, 1, 'f', 0, 0,
	10, 6, 1, 4, 0, 0x41, 7, 0x0b)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "codecache-")
	if err == nil {
		err = attachParts(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot attach the parts:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// attachParts writes a program with the code of seven as three modules, one of them intact, and
// makes it the program of this process.
func attachParts(dir string) error {
	var parts []attached.New
	for _, id := range []string{"intact", "damaged", "foreign", "empty handed"} {
		code, err := compileSeven(dir, id, nil, io.Discard)
		if err != nil {
			return err
		}
		if err := code.Close(); err != nil {
			return err
		}
		cache, err := Look(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		part, err := cache.Part(id)
		if err != nil {
			return err
		}

		about := part.About.(json.RawMessage)
		switch id {
		case "damaged":
			part.Data[len(part.Data)/2] ^= 0x40
		case "foreign":
			part.About = json.RawMessage(bytes.Replace(about, []byte(`"Key":"`), []byte(`"Key":"0`), 1))
		case "empty handed":
			part.About = json.RawMessage(bytes.Replace(about, []byte(`"Hollow":`), []byte(`"Hollow":9`), 1))
		}
		parts = append(parts, part)
	}

	path := filepath.Join(dir, "program")
	program, err := os.Create(path + ".alone")
	if err != nil {
		return err
	}
	defer program.Close()
	whole, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := attached.Write(whole, program, parts...); err != nil {
		return err
	}
	return attached.Use(whole, func() (*os.File, error) { return os.Open(path) })
}

func compileSeven(dir, id string, announce func(), log io.Writer) (*Code, error) {
	cache, release, err := Open(context.Background(), dir, slog.New(slog.NewTextHandler(log, nil)),
		func(*Cache) bool { return false })
	if err != nil {
		return nil, err
	}
	defer release()

	return cache.Compile(context.Background(), Module{
		ID:       id,
		Read:     func() ([]byte, error) { return seven, nil },
		Import:   func(context.Context, wazero.Runtime) error { return nil },
		Announce: announce,
	})
}

func TestAttachedCodeIsUsedWhereItFits(t *testing.T) {
	for _, row := range []struct {
		id         string
		isCompiled bool
		log        string
	}{
		{"intact", false, ""},
		{"damaged", true, "is not used"},
		{"foreign", true, ""},
		{"empty handed", true, "is not used"},
		{"not attached", true, ""},
	} {
		for _, place := range []string{"with a cache", "without a cache"} {
			t.Run(row.id+" "+place, func(t *testing.T) {
				dir := ""
				if place == "with a cache" {
					dir = t.TempDir()
				}
				var log bytes.Buffer
				isCompiled := false
				code, err := compileSeven(dir, row.id, func() { isCompiled = true }, &log)
				if err != nil {
					t.Fatal(err)
				}
				defer code.Close()
				if got := callSeven(t, code); got != 7 {
					t.Errorf("the function returns %d", got)
				}
				if isCompiled != row.isCompiled {
					t.Errorf("it is compiled: %v", isCompiled)
				}
				if !strings.Contains(log.String(), row.log) || row.log == "" && log.Len() > 0 {
					t.Errorf("the log says %q", log.String())
				}
			})
		}
	}
}

func TestAttachedCodeGoesIntoTheCache(t *testing.T) {
	dir := t.TempDir()
	code, err := compileSeven(dir, "intact", nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()

	cache, err := Look(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !cache.HasCode("intact") {
		t.Error("the cache has no code")
	}
	desks, err := filepath.Glob(filepath.Join(dir, deskPrefix+"*"))
	if err != nil || len(desks) > 0 {
		t.Errorf("%v is left (%v)", desks, err)
	}
}

func callSeven(t *testing.T, code *Code) uint64 {
	t.Helper()
	instance, err := code.Runtime.InstantiateModule(t.Context(), code.Module, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	results, err := instance.ExportedFunction("f").Call(t.Context())
	if err != nil || len(results) != 1 {
		t.Fatalf("%v, %v", results, err)
	}
	return results[0]
}
