package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// mostCompared bounds the short texts and the packages that a fingerprint reads, in bytes.
const mostCompared = 64 << 20

// Fingerprint identifies everything in the session's configuration that a guest may have read into
// its own memory: names, descriptions, JSON, short texts, the lists of directories, and packages. A
// guest requests everything else from the host, so only the description of a long text is included.
func (a *Accounts) Fingerprint(ctx context.Context) (string, error) {
	f := &fingerprint{accounts: a, ctx: ctx, sum: sha256.New(), left: mostCompared}
	a.calls.begin(ctx, a.ordinal) // ctx also ends the computation of a text's description
	err := f.read()
	a.endCalls()
	if err != nil {
		return "", fmt.Errorf("cannot compare the session's contexts: %w", err)
	}
	return hex.EncodeToString(f.sum.Sum(nil)), nil
}

type fingerprint struct {
	accounts *Accounts
	ctx      context.Context //nolint:containedctx // the context of one call
	sum      hash.Hash
	left     int64 // bytes that may still be read
}

// errLargeInputs means that reading everything would take too long for a state.
var errLargeInputs = errors.New("the short contexts or the packages have more than 64 MiB")

func (f *fingerprint) read() error {
	a := f.accounts
	if err := f.addReply(a.describe()); err != nil {
		return err
	}

	for i, in := range a.cfg.Inputs {
		var err error
		switch {
		case in.Dir != nil:
			err = f.addReply(listDir(a.directoryOf(i)))
		case in.Text != nil:
			err = f.addText(a.textOf(i))
		default:
			err = f.add(in.Value)
		}
		if err != nil {
			return err
		}
	}
	return f.addPackages()
}

// add adds a part with its length, so that different lists of parts always differ.
func (f *fingerprint) add(part []byte) error {
	if f.left -= int64(len(part)); f.left < 0 {
		return errLargeInputs
	}
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
	_, _ = f.sum.Write(size[:]) // it never fails
	_, _ = f.sum.Write(part)
	return f.ctx.Err()
}

func (f *fingerprint) addReply(r Reply) error {
	if r.Failed {
		return errors.New(string(r.Data))
	}
	return f.add(r.Data)
}

// addText adds a text of which guests have a copy.
func (f *fingerprint) addText(t *bigtext.Text) error {
	if t.Size() > LongText {
		return nil
	}
	part := make([]byte, t.Size())
	if _, err := t.ReadAt(part, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return f.add(part)
}

// addPackages adds a digest of the packages, which never change during the session.
func (f *fingerprint) addPackages() error {
	a := f.accounts
	if a.packages == nil {
		return nil
	}

	if a.packagesSum == nil {
		all := &fingerprint{ctx: f.ctx, sum: sha256.New(), left: mostCompared}
		for _, name := range a.packages.Files() {
			content, err := a.packages.Read(name)
			if err == nil {
				err = errors.Join(all.add([]byte(name)), all.add(content))
			}
			if err != nil {
				return err
			}
		}
		a.packagesSum = all.sum.Sum(nil)
	}
	return f.add(a.packagesSum)
}

// Text opens the text with the given number in the guest, outside a snippet.
func (a *Accounts) Text(ctx context.Context, number int) (*bigtext.Text, error) {
	a.calls.begin(ctx, a.ordinal)
	defer a.endCalls()

	t, _, err := a.openText(number)
	return t, err
}

// Adopt adapts the accounts to a guest that arrives with its memory: its snippets have run, and it
// refers to texts by the numbers in the state.
func (a *Accounts) Adopt(state []byte, snippet int) error {
	if _, err := a.adopt(state); err != nil {
		return err
	}
	a.ordinal = snippet
	return nil
}
