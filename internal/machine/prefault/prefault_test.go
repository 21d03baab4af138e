package prefault

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryKeepsItsBytes(t *testing.T) {
	memory := make([]byte, Least+5)
	want := bytes.Repeat([]byte("0123456789"), len(memory)/10+1)[:len(memory)]
	for _, part := range [][]byte{memory, memory[1:], memory[:10]} {
		end := Begin(part)
		copy(memory, want)
		end()
		if !bytes.Equal(memory, want) {
			t.Fatal("it has other bytes")
		}
		clear(memory)
	}
}
