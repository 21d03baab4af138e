package escapes

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// naiveRuntime is a runtime that only writes requests to a file.
const naiveRuntime = `import sys, types
_rlm = sys.modules['_rlm'] = types.ModuleType('_rlm')
def call(request):
    data = request.encode()
    with open(%PATH%, 'ab') as f: f.write(len(data).to_bytes(4, 'little') + data)
_rlm.call = call
`

// smaller is the divisor of the size of the requests, which protects the machine from the control.
const smaller = 100

// TestAmplificationByANaiveDecoder is the control of the amplification attacks. It shows that a
// host that simply decodes their requests allocates more than a case may cost.
func TestAmplificationByANaiveDecoder(t *testing.T) {
	skip.UnderRace(t)
	python := skip.WithoutCPython(t)
	for _, c := range Cases(t) {
		if c.Class != "amplification" || c.keys["unsafe"] != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			cost := uint64(0)
			for _, request := range readRequests(t, python, c) {
				cost += decodeNaively(request)
			}
			if cost*smaller < mostHostMemory {
				t.Errorf("a naive decoder allocates only %d bytes", cost*smaller)
			}
		})
	}
}

// readRequests runs a case without a host and returns the requests that it sends.
func readRequests(t *testing.T, python string, c Case) (requests [][]byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "requests")
	runtime := strings.ReplaceAll(naiveRuntime, "%PATH%", strconv.Quote(path))
	source := strings.ReplaceAll(c.Source, "_000_000", "_000_0")
	if kind, said := harm.WatchPython(t, python, runtime+source, time.Minute); kind != harm.None {
		t.Fatalf("it %s: %s", kind, said)
	}

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 0 {
		end := 4 + binary.LittleEndian.Uint32(data)
		requests, data = append(requests, data[4:end]), data[end:]
	}
	return requests
}

// decodeNaively decodes the JSON in a request and returns how many bytes the decoding allocates.
func decodeNaively(request []byte) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if at := bytes.IndexAny(request, "[{"); at >= 0 {
		var value any
		_ = json.Unmarshal(request[at:], &value) // what it decodes before an error counts, too
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
