//go:build linux && (amd64 || arm64)

package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkDurability measures POST exec in a live session with each durability, and a bare write
// with fsync on the same disk.
func BenchmarkDurability(b *testing.B) {
	b.Run("fsync", func(b *testing.B) {
		file, err := os.Create(filepath.Join(b.TempDir(), "file"))
		if err != nil {
			b.Fatal(err)
		}
		defer file.Close()

		page := make([]byte, 4096)
		var times []time.Duration
		for b.Loop() {
			begun := time.Now()
			if _, err := file.Write(page); err != nil {
				b.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(begun))
		}
		b.ReportMetric(percentile(times, 0.5), "p50-ms")
	})

	for _, durability := range []string{"idle", "kept"} {
		b.Run(durability, func(b *testing.B) {
			s := benchServer(b)

			path := s.open("", object{"durability": durability})
			var times []time.Duration

			for b.Loop() {
				begun := time.Now()
				s.add(path)
				times = append(times, time.Since(begun))
			}

			b.ReportMetric(percentile(times, 0.5), "p50-ms")
			b.ReportMetric(percentile(times, 0.99), "p99-ms")
		})
	}
}
