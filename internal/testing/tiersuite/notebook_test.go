package tiersuite_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

const (
	notebookCells  = "testdata/notebook/cells.py"
	notebookDriver = "testdata/notebook/driver.py"
	leastCells     = 200
	betweenCells   = "# %%"
)

// hugeTexts is the environment variable for a run that also compares texts of 1 GiB, such as `make
// huge`.
const hugeTexts = "RLM_HUGE_TEXTS"

// textSizes returns the sizes of the texts to compare, in bytes. One text is received unchanged by
// a guest, one is mapped, and one has the size of the demo.
func textSizes(t *testing.T) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{"1KB": 1 << 10}
	if !testing.Short() {
		sizes["9MB"] = 9 << 20
	}
	if os.Getenv(hugeTexts) != "" {
		sizes["1GiB"] = 1 << 30
	}
	return sizes
}

// cellRan is the output of one cell, and its failure: "ValueError: message".
type cellRan [2]string

// TestTheNotebook runs a session like those that models write, in tier wasm and in CPython, on
// texts of each size. Each cell must print and raise the same in both.
func TestTheNotebook(t *testing.T) {
	python, tier := skip.WithoutCPython(t), openWasm(t)
	source, err := os.ReadFile(notebookCells)
	if err != nil {
		t.Fatal(err)
	}
	cells := strings.Split(string(source), betweenCells)[1:]
	if len(cells) < leastCells {
		t.Fatalf("%d cells, want %d", len(cells), leastCells)
	}

	for name, size := range textSizes(t) {
		t.Run(name, func(t *testing.T) {
			skip.UnderRace(t)
			path := writeFile(t, func(w io.Writer) error { return writeTickets(w, size) })
			var want []cellRan
			askCPython(t, python, &want, notebookDriver, notebookCells, path)
			if len(want) != len(cells) {
				t.Fatalf("CPython ran %d cells, want %d", len(want), len(cells))
			}

			box := openOver(t, tier, path)
			for i, cell := range cells {
				began := time.Now()
				r, err := box.Run(t.Context(), tiers.Job{Source: "#" + cell})
				if err != nil {
					t.Fatalf("cannot run cell %d: %v", i+1, err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Logf("cell %d took %s", i+1, took.Round(time.Second))
				}

				got := cellRan{string([]rune(r.Stdout))} // U+FFFD for each byte that is not UTF-8
				if r.Exception != nil {
					got[1] = r.Exception.Type + ": " + r.Exception.Message
				}
				if got != want[i] || r.Status != tiers.StatusOK && r.Status != tiers.StatusRaised {
					t.Errorf("cell %d (%s %s)\n%s\ngot  %.2000q\nwant %.2000q",
						i+1, r.Status, r.Limit, cell, got, want[i])
				}
			}
		})
	}
}

// askCPython runs a script in native CPython and decodes the JSON that it prints.
func askCPython(t *testing.T, python string, into any, args ...string) {
	t.Helper()
	if err := runCPython(t.Context(), python, into, args...); err != nil {
		t.Fatal(err)
	}
}

// runCPython decodes the JSON printed by a script in CPython.
func runCPython(ctx context.Context, python string, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, python, append([]string{"-I", "-X", "utf8"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", args[0], err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}

// openOver opens a sandbox with a text file as its context.
func openOver(t *testing.T, tier tiers.Tier, path string) tiers.Sandbox {
	t.Helper()
	text, err := bigtext.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, text)
	box, err := tier.Open(t.Context(), tiers.Config{
		Inputs: []tiers.Input{{Name: "context.txt", Text: text}},
		Limits: tiers.Limits{Memory: 1 << 30, Output: 10 << 20, Wall: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, box)
	return box
}

// writeFile returns the path of a new file.
func writeFile(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "context.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for _, step := range []func() error{func() error { return write(w) }, w.Flush, f.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// writeTickets writes about size bytes of a help desk's export: fields, logs, JSON, CSV and prose,
// with a byte order mark, both line ends, NUL, bytes that are not UTF-8, and letters of several
// scripts. One ticket contains a needle.
func writeTickets(w io.Writer, size int64) error {
	titles := []string{
		"Refund not received", "Cannot log in", "Timeout while exporting", "Wrong amount on the invoice",
		"Zugang für Łódź gesperrt",
	}
	names := []string{"Zoë Kowalska", "Ann Lee", "Νίκος Παππάς", "李 小龙", "Bob Stone"}
	services, levels := []string{"auth", "billing", "export"}, []string{"INFO", "INFO", "WARN", "ERROR"}
	countries, statuses := []string{"PL", "DE", "GR", "CN", "US"}, []string{"open", "closed", "pending"}

	n, err := io.WriteString(w, "\ufeff")
	written, hidden := int64(n), false
	for i := 1; written < size && err == nil; i++ {
		var b bytes.Buffer
		mixed := i * 7919 % 10007
		fmt.Fprintf(&b, "## Ticket %d: %s\r\n", i, titles[mixed%len(titles)])
		fmt.Fprintf(&b, "Date: 2024-%02d-%02d\nFrom: %s <user%d@%s.example>\n",
			mixed%12+1, mixed%28+1, names[i%len(names)], mixed, services[mixed%3])
		fmt.Fprintf(&b, "Status: %s\nTags: %s, %s\n\n", statuses[mixed%3], services[mixed%3], levels[mixed%4])
		for k := range mixed%3 + 1 {
			fmt.Fprintf(&b, "2024-%02d-%02d %02d:%02d:%02d %s [%s] user=%d code=%d msg=\"timeout after %ds\"\n",
				mixed%12+1, mixed%28+1, mixed%24, i%60, k, levels[(mixed+k)%4], services[(mixed+k)%3],
				mixed%500, 200+100*((mixed+k)%4), k+1)
		}
		amount := float64(mixed) / 100
		fmt.Fprintf(&b, "{\"id\": %d, \"name\": %q, \"amount\": %.2f, \"country\": %q, \"tags\": [%q]}\n",
			i, names[i%len(names)], amount, countries[i%len(countries)], services[mixed%3])
		fmt.Fprintf(&b, "%d,%s,%.2f,%s\r\n", i, names[i%len(names)], amount, countries[i%len(countries)])
		b.WriteString("The customer asks for a refund once; nobody answered.\tSee ticket ")
		fmt.Fprintf(&b, "%d, and the note 漢字 of Ωmega.\n", mixed)
		if i%97 == 1 {
			b.WriteString("caf\xe9 \x00 cut \xe2\x82\n")
		}
		if !hidden && written+int64(b.Len()) >= size*3/4 {
			hidden = true
			fmt.Fprintf(&b, "NEEDLE-%dx is here\n", i)
		}
		b.WriteString("---\n")
		n, err = w.Write(b.Bytes())
		written += int64(n)
	}
	return err
}
