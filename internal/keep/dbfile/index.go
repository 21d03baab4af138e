package dbfile

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// logIndex is the content of a log's index: https://sqlite.org/walformat.html. Processes that use a
// database share the index. A killed process leaves it behind, and SQLite rebuilds it.
type logIndex struct {
	frames int     // committed
	copied int     // how many of these frames are also in the database
	count  int64   // pages in the database
	salt   []byte  // the log's
	pages  []int64 // the pages in the frames
}

// These are the offsets and sizes in an index.
const (
	indexVersion = 3_007_000
	indexHead    = 48 // bytes; followed by a copy
	framesAt     = 16
	pagesAt      = 20
	saltAt       = 32
	indexSumAt   = 40
	copiedAt     = 2 * indexHead
	listAt       = 136     // where the page numbers begin in the first block
	blockSize    = 1 << 15 // bytes; the second half is a hash table
)

// readIndex reads an index. It returns the zero value if the index is missing or damaged.
func readIndex(path string) (index logIndex, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return index, nil
	}
	if err != nil {
		return index, err
	}
	defer file.Close()

	data, err := io.ReadAll(io.LimitReader(file, (maxFrames/4096+1)*blockSize))
	if err != nil || len(data) < listAt {
		return index, err
	}

	native := binary.NativeEndian
	for _, head := range [][]byte{data[:indexHead], data[indexHead : 2*indexHead]} { // a damaged head has a copy
		s := sum{order: native}
		s.add(head[:indexSumAt])
		isWhole := s.a == native.Uint32(head[indexSumAt:]) && s.b == native.Uint32(head[indexSumAt+4:])
		frames := native.Uint32(head[framesAt:])
		if !isWhole || native.Uint32(head) != indexVersion || frames > maxFrames {
			continue
		}
		index.frames, index.count = int(frames), int64(native.Uint32(head[pagesAt:]))
		index.copied = int(min(native.Uint32(data[copiedAt:]), frames))
		index.salt = head[saltAt : saltAt+8]
		break
	}

	if index.frames == 0 {
		return logIndex{}, nil
	}
	for ; len(data) > 0; data = data[min(len(data), blockSize):] {
		list := data[:min(len(data), blockSize/2)]
		if len(index.pages) == 0 {
			list = list[listAt:]
		}
		for ; len(list) >= 4; list = list[4:] {
			index.pages = append(index.pages, int64(native.Uint32(list)))
		}
	}

	index.pages = index.pages[:min(len(index.pages), index.frames)]
	return index, nil
}
