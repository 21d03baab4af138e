//go:build linux && (amd64 || arm64)

package wasm

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"fmt"
	"hash"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// hashed defines the bytes that the snippets hash, and prints digests.
const hashed = `import hashlib, hmac, io
d = bytes(i * i % 251 + i // 509 & 255 for i in range(210_000))
def digest(h): return h.hexdigest(32) if h.name.startswith('shake') else h.hexdigest()
`

func hashedBytes() []byte {
	d := make([]byte, 210_000)
	for i := range d {
		d[i] = byte(i*i%251 + i/509)
	}
	return d
}

// shake is a hash with 32-byte digests, made from a function of any digest length.
type shake struct{ *sha3.SHAKE }

func (s shake) Sum(b []byte) []byte {
	digest := make([]byte, 32)
	_, _ = s.Read(digest)
	return append(b, digest...)
}

func (shake) Size() int { return 32 }

// goHashes are the hashlib functions that the host supports.
var goHashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New,
	"sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
	"sha3_224":  func() hash.Hash { return sha3.New224() },
	"sha3_256":  func() hash.Hash { return sha3.New256() },
	"sha3_384":  func() hash.Hash { return sha3.New384() },
	"sha3_512":  func() hash.Hash { return sha3.New512() },
	"shake_128": func() hash.Hash { return shake{sha3.NewSHAKE128()} },
	"shake_256": func() hash.Hash { return shake{sha3.NewSHAKE256()} },
}

// edgeLengths returns lengths around the ends of blocks, for few blocks, for many, and for as many
// as one host call digests.
func edgeLengths() []int {
	lengths := []int{0, 1}
	for _, block := range []int{64, 72, 104, 128, 136, 144, 168} {
		full := hashPart / block
		for _, blocks := range []int{1, 2, 3, 4, 5, 6, 16, 17, 18, full - 1, full, full + 1, 2 * full, 3*full + 5} {
			lengths = append(lengths, blocks*block-1, blocks*block, blocks*block+1)
		}
	}
	return lengths
}

// TestHashesAreEqual compares digests of hashlib with those of Go, in both engines, for lengths
// around the ends of blocks, starting at an odd address.
func TestHashesAreEqual(t *testing.T) {
	skip.Short(t, "both engines compute thousands of digests")
	d, both := hashedBytes(), readyEngines(t)
	for name, newHash := range goHashes {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, n := range edgeLengths() {
				h := newHash()
				_, _ = h.Write(d[1 : n+1])
				want = append(want, fmt.Sprintf("%d %x", n, h.Sum(nil)))
			}
			checkDigests(t, both, want, fmt.Sprintf(`
name, lengths = %q, %s
for n in lengths:
    print(n, digest(hashlib.new(name, memoryview(d)[1:n + 1])))
`, name, strings.ReplaceAll(fmt.Sprint(edgeLengths()), " ", ",")))
		})
	}
}

// TestHashObjectsGoOn checks hash objects that are updated in parts and copied in between.
func TestHashObjectsGoOn(t *testing.T) {
	d, both := hashedBytes(), readyEngines(t)
	for name, newHash := range goHashes {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, n := range []int{3000, len(d), len(d) - 777} {
				h := newHash()
				_, _ = h.Write(d[:n])
				want = append(want, fmt.Sprintf("%x", h.Sum(nil)))
			}
			h := newHash()
			_, _ = h.Write(d[:100_000])
			_, _ = h.Write(d[:100_000])
			want = append(want, fmt.Sprintf("%x", h.Sum(nil)))
			checkDigests(t, both, want, fmt.Sprintf(`
h = hashlib.new(%q, d[:777])
c = h.copy()
c.update(d[777:3000])
h.update(d[777:150_001])
h.update(d[150_001:])
print(digest(c), digest(h), sep='\n')
print(digest(hashlib.file_digest(io.BytesIO(d[:-777]), %[1]q)))
h = hashlib.new(%[1]q, d[:100_000])
digest(h)  # does not end it
h.update(d[:100_000])
print(digest(h))
`, name))
		})
	}

	mac := hmac.New(sha256.New, d[:500])
	_, _ = mac.Write(d)
	want := []string{fmt.Sprintf("%x", mac.Sum(nil))}
	checkDigests(t, both, want, "print(hmac.new(d[:500], d, 'sha256').hexdigest())")
}

// readyEngines prepares a tier for each engine.
func readyEngines(t *testing.T) map[string]*engine {
	t.Helper()
	ready := map[string]*engine{}
	for _, name := range engines {
		ready[name] = readyEngineWith(t, name)
	}
	return ready
}

// checkDigests compares the lines that a snippet prints, in each engine.
func checkDigests(t *testing.T, both map[string]*engine, want []string, source string) {
	t.Helper()
	cfg := tiers.Config{Limits: tiers.Limits{Output: 1 << 20}}
	for engine, e := range both {
		r := runOnce(t, e, cfg, hashed+source)
		got := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		if r.Status != tiers.StatusOK || len(got) != len(want) {
			t.Errorf("%s: %s %+v, %d lines instead of %d", engine, r.Status, r.Exception, len(got), len(want))
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %s\n%s instead of %s", engine, source, got[i], want[i])
				break
			}
		}
	}
}

// TestHashingCanBeStopped hashes more bytes in one call than the fuel pays for. It checks that the
// snippet ends within the call, at the same point in both engines.
func TestHashingCanBeStopped(t *testing.T) {
	const fuel, size = 10_000_000, 64 << 20
	cfg := tiers.Config{Deterministic: true, Limits: tiers.Limits{Fuel: fuel}}
	both := readyEngines(t)
	for name, f := range map[string]hashFunction{
		"md5": hashFunctions[1], "sha512": hashFunctions[4], "sha3_512": hashFunctions[72],
	} {
		t.Run(name, func(t *testing.T) {
			used := map[uint64]bool{}
			source := fmt.Sprintf("import hashlib\nhashlib.%s(bytes(%d))", name, size)
			for engine, e := range both {
				r := runOnce(t, e, cfg, source)
				used[r.Usage.Fuel] = true
				if r.Limit != tiers.LimitFuel || r.Usage.Fuel > fuel+hashPart/uint64(f.unit)+1000 {
					t.Errorf("%s, %s: %s %s after %d units of fuel", name, engine, r.Status, r.Limit, r.Usage.Fuel)
				}
			}
			if len(used) != 1 {
				t.Errorf("%s: the engines use different fuel: %v", name, used)
			}
		})
	}
}

// TestHashingCostsFuelByLength compares the fuel of a hash of one MiB with that of a hash of nine.
func TestHashingCostsFuelByLength(t *testing.T) {
	both := readyEngines(t)
	for name, f := range map[string]hashFunction{
		"md5": hashFunctions[1], "sha1": hashFunctions[2], "sha256": hashFunctions[3],
		"sha512": hashFunctions[4], "sha3_256": hashFunctions[136], "shake_128": hashFunctions[168],
	} {
		t.Run(name, func(t *testing.T) {
			for engine, e := range both {
				var used [2]uint64
				for i, n := range []int{1, 9} {
					source := fmt.Sprintf(
						"import hashlib\nd = memoryview(bytes(9 << 20))\nhashlib.%s(d[:%d << 20])", name, n,
					)
					used[i] = runOnce(t, e, tiers.Config{}, source).Usage.Fuel
				}
				want := 8 << 20 / uint64(f.unit)
				if got := used[1] - used[0]; got < want*99/100 || got > want*102/100 {
					t.Errorf("%s, %s: 8 MiB cost %d fuel, want %d", name, engine, got, want)
				}
			}
		})
	}
}
