package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// TextFolder is a folder of the host that holds the characters of long texts for the guests of one
// session. On the host, only this user can enter it. In the guests, the inner folder is mounted
// read-only at TextsAt.
type TextFolder struct {
	outer, inner string
	lock         *os.File // its lock shows other processes that this process is alive
	log          *slog.Logger
	shown        map[int]*bigtext.Characters // by the number of the text
	refused      map[int]error               // likewise; another attempt might copy the whole text
}

// TextsAt is the path of the inner folder in guests.
const TextsAt = "/context/texts"

const textsPrefix = "rlm-texts-"

// ShowTexts creates a folder for the long texts of the session, and offers it to the guest. It
// returns nil without long texts, or if this system does not support such folders.
func (a *Accounts) ShowTexts(log *slog.Logger) *TextFolder {
	if !canLink || a.SumLongTexts() == 0 {
		return nil
	}
	sweepTexts.Do(removeAbandoned)

	f, err := newTextFolder()
	if err != nil {
		log.Warn("long contexts cannot be a str in this sandbox", "error", err)
		return nil
	}
	f.log = log
	a.OfferMapping(f.show)
	return f
}

func newTextFolder() (*TextFolder, error) {
	outer, err := os.MkdirTemp("", textsPrefix)
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for texts: %w", err)
	}

	f := &TextFolder{
		outer: outer, inner: filepath.Join(outer, "texts"), shown: map[int]*bigtext.Characters{},
		refused: map[int]error{},
	}
	f.lock, err = lockFolder(outer)
	if err == nil {
		err = os.Mkdir(f.inner, 0o755) //nolint:gosec // the outer folder is closed
	}
	if err == nil {
		err = os.Chmod(f.inner, 0o755) //nolint:gosec // independent of the umask
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make a folder for texts: %w", err), f.Close())
	}
	return f, nil
}

// Path returns the inner folder.
func (f *TextFolder) Path() string { return f.inner }

// show is a TextMapper.
func (f *TextFolder) show(
	ctx context.Context, number int, t *bigtext.Text,
) (place any, c *bigtext.Characters, err error) {
	if err := f.refused[number]; err != nil {
		return nil, nil, err
	}
	name := strconv.Itoa(number)
	c = f.shown[number]
	if c == nil {
		c, err = t.LinkCharacters(ctx, math.MaxInt64, filepath.Join(f.inner, name))
		if err != nil {
			f.log.Warn("a long context cannot be a str in this sandbox", "error", err)
			if ctx.Err() == nil {
				f.refused[number] = err
			}
			return nil, nil, err
		}
		f.shown[number] = c
	}
	return path.Join(TextsAt, name), c, nil
}

// Close removes the folder. Call it after the guests have ended.
func (f *TextFolder) Close() error {
	err := os.RemoveAll(f.outer)
	if f.lock != nil {
		_ = f.lock.Close() // nothing was written
	}
	return err
}

var sweepTexts sync.Once

// abandonedAge is the minimum age of a folder that is considered abandoned, because its owner may
// not have locked a younger one yet.
const abandonedAge = time.Minute

// removeAbandoned removes the folders of killed processes.
func removeAbandoned() {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), textsPrefix+"*")) // the pattern is valid
	for _, outer := range all {
		info, err := os.Lstat(outer)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < abandonedAge {
			continue
		}
		if lock, err := lockFolder(outer); err == nil {
			_ = os.RemoveAll(outer) // the next process tries again
			_ = lock.Close()        // as above
		}
	}
}
