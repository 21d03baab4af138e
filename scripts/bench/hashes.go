package main

import (
	"fmt"
	"os"
	"strings"
)

// byteFunctions are expressions over the bytes d, and over z, the compressed d.
var byteFunctions = []string{
	"hashlib.md5(d).digest()", "hashlib.sha1(d).digest()", "hashlib.sha256(d).digest()",
	"hashlib.sha512(d).digest()", "hashlib.sha3_256(d).digest()", "hashlib.blake2b(d).digest()",
	"zlib.crc32(d)", "zlib.adler32(d)", "zlib.decompress(z)", "zlib.compress(d)",
}

// byteCalls returns how often a run calls a function on input of that size. The calls must take
// much longer than the snippet's overhead.
func byteCalls(size int) int { return min(20_000, (16<<20)/size) }

// byteProgram is a program that calls a function on bytes of text.
const byteProgram = `
import hashlib, random, zlib
words = ["".join(random.Random(i).choices("etaoinshrdlu", k=2 + i %% 8)) for i in range(999)]
d = " ".join(random.Random(1).choices(words, k=%d // 4 + 9)).encode()[:%[1]d]
assert len(d) == %[1]d
z = zlib.compress(d)

def run():
    for _ in range(%d):
        %s
`

// measureHashes compares functions of hashlib and zlib in the engines of tier wasm with native
// CPython.
func (b *bench) measureHashes() error {
	engines, err := b.warmEngines()
	defer func() { closeAll(engines) }()
	if err != nil {
		return err
	}

	lines := [][]string{{"function", "bytes", "native", "wazero", "aot"}}
	for _, function := range byteFunctions {
		for _, size := range []int{64, 1 << 10, 64 << 10, 1 << 20} {
			best, err := b.timeProgram(engines, fmt.Sprintf(byteProgram, size, byteCalls(size), function))
			if err != nil {
				return fmt.Errorf("%s: %w", function, err)
			}
			rate := float64(byteCalls(size)*size) / best[0] / 1e6
			line := []string{function, fmt.Sprint(size), fmt.Sprintf("%.0f MB/s", rate)}
			for _, seconds := range best[1:] {
				line = append(line, fmt.Sprintf("%.2f ×", seconds/best[0]))
			}
			lines = append(lines, line)
			fmt.Fprintln(os.Stderr, strings.Join(line, "  "))
		}
	}
	printTable(lines)
	return nil
}
