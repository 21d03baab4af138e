package dbfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// checkLog refuses a database whose log lacks committed changes.
func checkLog(path string) error {
	file, err := openIfThere(path + logSuffix)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}

	log, err := readLog(file, path+indexSuffix)
	if err != nil {
		return err
	}
	if log.isDamaged() {
		return fmt.Errorf("%w: the log beside it lacks what was committed last", ErrDamaged)
	}
	return nil
}

// Verify compares all pages of a database with their checksums, and the log with its index. The
// error is [ErrDamaged] if something differs from what was written; [Find] returns the details. No
// process may be using the database. A database without checksums passes.
func Verify(path string) error {
	if err := checkLog(path); err != nil {
		return err
	}
	p, log, err := openPages(path)
	if err != nil {
		return err
	}
	defer p.close()
	switch {
	case p.inFile == 0 && log.last > 0:
		return fmt.Errorf("%w: only the log beside it is there", ErrDamaged)
	case p.inFile == 0 || !p.hasSums:
		return nil
	}

	if p.inFile < p.count {
		for n := p.inFile + 1; n <= p.count; n++ {
			if _, is := p.logged[n]; !is && n != pendingPage {
				return fmt.Errorf("%w: it has %d of %d pages", ErrDamaged, p.inFile, p.count)
			}
		}
	}

	reader := io.NewSectionReader(p.file, 0, p.inFile*pageSize)
	buffer := make([]byte, 256*pageSize)
	for n := int64(1); ; {
		read, err := io.ReadFull(reader, buffer)
		if err != nil && !isEnd(err) {
			return err
		}
		for part := buffer[:read]; len(part) > 0 && n <= p.count; n++ {
			page := part[:min(len(part), pageSize)]
			part = part[len(page):]
			if _, is := p.logged[n]; is || n == pendingPage {
				continue
			}
			if len(page) < pageSize || !hasSum(page, n) {
				return fmt.Errorf("%w: page %d of %d is not what was written", ErrDamaged, n, p.count)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
	}
}

// IsThere reports whether the file of a database exists.
func IsThere(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}
