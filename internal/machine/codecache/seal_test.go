package codecache

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// sealed writes a cache file and returns its bytes.
func sealed(t *testing.T, s *seal, path, key string, data []byte) []byte {
	t.Helper()
	if err := s.write(path, Head{Key: key}, data); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// unsealed returns the data after open and WriteTo have verified it.
func unsealed(s *seal, path, key string) ([]byte, error) {
	c, err := s.open(path, key)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	_, err = c.WriteTo(&data)
	return data.Bytes(), errors.Join(err, c.close())
}

func reversed(data []byte) []byte {
	data = bytes.Clone(data)
	slices.Reverse(data)
	return data
}

func testSeal(t *testing.T, dir string) *seal {
	t.Helper()
	s, err := makeSeal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOnlyWhatWasWrittenIsRead changes each part of a cache file, and checks that the output is
// always a prefix of the original data.
func TestOnlyWhatWasWrittenIsRead(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, "file"), "this version"
	s := testSeal(t, dir)
	data := make([]byte, 2*chunkSize+4096)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	twin := sealed(t, s, path, key, reversed(data))
	older := sealed(t, s, path, "another version", data)
	stranger := sealed(t, testSeal(t, t.TempDir()), path, key, data)
	whole := sealed(t, s, path, key, data)
	if got, err := unsealed(s, path, key); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("the whole file gives %d bytes of %d (%v)", len(got), len(data), err)
	}

	start := len(whole) - len(data)
	swapped := slices.Concat(
		whole[:start], data[chunkSize:2*chunkSize], data[:chunkSize], data[2*chunkSize:],
	)
	damaged := map[string][]byte{
		"empty":                  {},
		"half a prefix":          whole[:prefixSize/2],
		"half a head":            whole[:(prefixSize+start)/2],
		"no data":                whole[:start],
		"no last chunk":          whole[:start+2*chunkSize],
		"no last byte":           whole[:len(whole)-1],
		"one byte more":          append(bytes.Clone(whole), 0),
		"two chunks swapped":     swapped,
		"another file's data":    slices.Concat(whole[:start], twin[start:]),
		"another file's head":    slices.Concat(twin[:start], whole[start:]),
		"another version's file": older,
		"another version's head": slices.Concat(older[:len(older)-len(data)], data),
		"sealed by another user": stranger,
		"no seal":                data,
		"a head of four gigabytes": slices.Concat(
			whole[:prefixSize-4], []byte("\xff\xff\xff\xff"), whole[prefixSize:],
		),
		"a tag and a nonce of zeroes": slices.Concat(make([]byte, prefixSize-4), whole[prefixSize-4:]),
	}
	for at := range whole {
		isHead := at < start && whole[at] != 0
		if isHead || at%61 == 0 && at < start || at%4001 == 0 || at == len(whole)-1 {
			checkRefused(t, s, path, key, flipped(whole, at), data)
		}
	}
	for name, file := range damaged {
		t.Run(name, func(t *testing.T) { checkRefused(t, s, path, key, file, data) })
	}
}

// TestMappedDataIsVerified changes each chunk of mapped data, and checks that Verify fails.
func TestMappedDataIsVerified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	s := testSeal(t, t.TempDir())
	data := make([]byte, 2*chunkSize+4096)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	sealed(t, s, path, "key", data)
	f, err := s.open(path, "key")
	if err != nil {
		t.Fatal(err)
	}
	file, offset := f.Take()
	defer file.Close()

	mapped := make([]byte, len(data))
	if _, err := file.ReadAt(mapped, offset); err != nil || offset%pageSize != 0 || !bytes.Equal(mapped, data) {
		t.Errorf("the data at %d is not what was written: %v", offset, err)
	}
	if err := errors.Join(f.Verify(mapped), f.close()); err != nil {
		t.Error(err)
	}
	for _, at := range []int{0, chunkSize, 2 * chunkSize, len(data) - 1} {
		if f.Verify(flipped(mapped, at)) == nil {
			t.Errorf("a change at %d is not found", at)
		}
	}
	if f.Verify(mapped[:chunkSize]) == nil || f.Verify(nil) == nil || f.Verify(make([]byte, len(data)+1)) == nil {
		t.Error("another length is not found")
	}
}

func flipped(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 1
	return data
}

func checkRefused(t *testing.T, s *seal, path, key string, file, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := unsealed(s, path, key)
	if err == nil || !bytes.HasPrefix(data, got) {
		t.Errorf("the file gives %d bytes (%v)", len(got), err)
	}
}
