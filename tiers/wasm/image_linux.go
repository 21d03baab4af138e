package wasm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/machine/codecache"
)

// image is the memory of a prepared guest. Each sandbox starts as a copy-on-write view of it. It
// is stored in a sealed memfd, in this program's file, or in a verified cache file that only
// this user can change.
type image struct {
	file *os.File
	size uint64
	// shown is the part of the memory that the file contains, from offset on. The rest is zeros.
	shown  span
	offset int64
	// view maps the image read-only, for comparisons.
	view []byte
	// hot lists the pages that every snippet writes, as byte offsets.
	hot []span

	mu   sync.Mutex
	free map[mappingKind][][]byte // returned mappings
}

// mappingKind identifies interchangeable mappings of one image.
type mappingKind struct{ length, reach uint64 }

// poolMappings bounds the mappings of one length that are kept for reuse.
const poolMappings = 64

// newImage makes an image of size bytes, a whole number of pages, from the bytes of its runs, one
// after another. The rest remains holes, which use no memory.
func newImage(size uint64, runs []span, source io.WriterTo) (*image, error) {
	file, err := memoryFile("rlm-image")
	if err != nil {
		return nil, err
	}
	img := &image{file: file, size: size, shown: span{0, size}, free: map[mappingKind][][]byte{}}

	if err := img.fill(runs, source); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot fill the image's memory: %w", err), img.close())
	}
	return img, nil
}

// memoryFile creates an empty file in memory, without a path.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("cannot create a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// fillImage makes an image of size bytes; fill writes it into zeroed memory.
func fillImage(size uint64, fill func(memory []byte) error) (img *image, err error) {
	file, err := memoryFile("rlm-image")
	if err != nil {
		return nil, err
	}
	img = &image{file: file, size: size, shown: span{0, size}, free: map[mappingKind][][]byte{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot fill the image's memory: %w", err), img.close())
		}
	}()
	if err := file.Truncate(int64(size)); err != nil {
		return img, err
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return img, err
	}

	_ = unix.Madvise(memory, unix.MADV_POPULATE_WRITE) // older kernels create the pages one by one
	err = fill(memory)
	if err = errors.Join(err, unix.Munmap(memory)); err == nil {
		err = seal(file)
	}
	if err == nil {
		err = img.open()
	}
	return img, err
}

func (img *image) fill(runs []span, source io.WriterTo) error {
	if err := img.file.Truncate(int64(img.size)); err != nil {
		return err
	}
	if _, err := source.WriteTo(&runWriter{img.file, runs}); err != nil {
		return err
	}

	if err := seal(img.file); err != nil {
		return fmt.Errorf("cannot seal it: %w", err)
	}
	return img.open()
}

// imageInFile makes an image from an immutable file, and takes ownership of the file.
func imageInFile(file *os.File, offset int64, shown span, size uint64) (*image, error) {
	img := &image{
		file: file, size: size, shown: shown, offset: offset, free: map[mappingKind][][]byte{},
	}
	if err := img.open(); err != nil {
		return nil, errors.Join(err, img.close())
	}
	return img, nil
}

// imageInCache makes an image from a cache file. It maps the file, and then verifies it. If the
// pages of this machine are larger than those of the file, it copies the file instead.
func imageInCache(size uint64, shown span, f *codecache.File) (*image, error) {
	if os.Getpagesize() > pageSize {
		return newImage(size, []span{shown}, f)
	}
	file, offset := f.Take()
	img, err := imageInFile(file, offset, shown, size)
	if err != nil {
		return nil, err
	}
	data := img.view[shown.Start:shown.End]
	_ = unix.Madvise(data, unix.MADV_POPULATE_READ) // older kernels read the pages one by one

	if err := f.Verify(data); err != nil {
		return nil, errors.Join(err, img.close())
	}
	return img, nil
}

// open maps the view.
func (img *image) open() error {
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	view, err := unix.Mmap(-1, 0, int(img.size), unix.PROT_READ, flags)
	if err != nil {
		return err
	}
	img.view = view
	return img.show(view, unix.PROT_READ, unix.MAP_SHARED)
}

// show maps the file's bytes into memory.
func (img *image) show(memory []byte, access, flags int) error {
	if img.shown.Start == img.shown.End {
		return nil
	}
	_, err := unix.MmapPtr(
		int(img.file.Fd()), img.offset, unsafe.Pointer(&memory[img.shown.Start]),
		uintptr(img.shown.End-img.shown.Start), access, flags|unix.MAP_FIXED,
	)
	return err
}

// sealAttempts take four seconds in total, in addition to the 150 ms that the kernel itself waits
// in each.
const sealAttempts = 30

// seal makes a file in memory immutable. On a busy machine the kernel may still hold the most
// recently written pages, and then answers EBUSY for a moment.
func seal(file *os.File) error {
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	for attempt := 1; ; attempt++ {
		_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals)
		if !errors.Is(err, unix.EBUSY) || attempt == sealAttempts {
			return err
		}
		<-time.After(time.Duration(attempt) * 10 * time.Millisecond)
	}
}

// runWriter writes bytes to the runs of a file, one run after another.
type runWriter struct {
	file *os.File
	runs []span
}

func (w *runWriter) Write(data []byte) (written int, err error) {
	for len(data) > 0 && len(w.runs) > 0 {
		run := w.runs[0]
		n, err := w.file.WriteAt(data[:min(uint64(len(data)), run.End-run.Start)], int64(run.Start))
		written += n
		if err != nil {
			return written, err
		}

		data = data[n:]
		if w.runs[0].Start += uint64(n); w.runs[0].Start == run.End {
			w.runs = w.runs[1:]
		}
	}

	return written, nil
}

// close unmaps the image and its mappings. Close all sandboxes first.
func (img *image) close() error {
	img.mu.Lock()
	defer img.mu.Unlock()
	var errs []error
	for kind, list := range img.free {
		for _, data := range list {
			errs = append(errs, release(data, kind.reach))
		}
	}

	img.free = nil
	if img.view != nil {
		errs = append(errs, unix.Munmap(img.view))
	}
	return errors.Join(append(errs, img.file.Close())...)
}

func (img *image) reuse(length, reach uint64) []byte {
	img.mu.Lock()
	defer img.mu.Unlock()
	kind := mappingKind{length, reach}
	list := img.free[kind]
	if len(list) == 0 {
		return nil
	}

	data := list[len(list)-1]
	img.free[kind] = list[:len(list)-1]
	return data
}

func (img *image) keep(data []byte, reach uint64) bool {
	img.mu.Lock()
	defer img.mu.Unlock()
	kind := mappingKind{uint64(len(data)), reach}
	if img.free == nil || len(img.free[kind]) >= poolMappings || len(img.free) > 8 {
		return false
	}

	img.free[kind] = append(img.free[kind], data)
	return true
}

// original returns the image's bytes at [start, end), or nil outside the image.
func (img *image) original(start, end uint64) []byte {
	if end > img.size {
		return nil
	}
	return img.view[start:end]
}
