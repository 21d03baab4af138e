package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/internal/machine/attached"
	"github.com/rlmhq/rlm/internal/machine/cpython"
)

// attachedCode maps the machine code appended to this program, if its hash is sha256.
func attachedCode(sha256 string) (*aot.Program, error) {
	var about attached.Code
	file, part, err := attached.Find(attached.CodePart, &about)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if about.SHA256 != sha256 {
		return nil, errors.New("the attached code is of another version")
	}
	return aot.LoadFile(about.Header, file, part.Offset, part.Size)
}

// adoptAttached uses the image appended to this program, if it was prepared for this key.
func (e *engine) adoptAttached(key string) error {
	var about attached.Image
	file, part, err := attached.Find(attached.ImagePart, &about)
	if err != nil {
		return err
	}
	var cached cachedImage
	err = json.Unmarshal(about.Cached, &cached)
	shown := span{about.Start, about.Start + uint64(part.Size)}
	if err == nil && (about.Key != key || shown.End > cached.Size || shown.Start%pageSize != 0) {
		err = errors.New("the attached image is of another version")
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}

	img, err := imageInFile(file, part.Offset, shown, cached.Size)
	if err != nil {
		return fmt.Errorf("cannot map the attached image: %w", err)
	}
	e.image, e.layout = img, cached.Layout
	e.image.hot = e.layout.Hot
	return nil
}

// Parts prepares the tier and returns the parts that [attached.Write] appends to a program, so
// that the program starts without preparing them. Only the engine "aot" has such parts.
func (t *tier) Parts(ctx context.Context) ([]attached.New, error) {
	e, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if e.name != engineAOT {
		return nil, fmt.Errorf("engine %s has no parts to attach", e.name)
	}
	blob, err := cpython.Code()
	if err != nil {
		return nil, err
	}
	head, code, err := aot.Split(blob)
	if err != nil {
		return nil, err
	}

	view := e.image.view
	shown := nonzero(view)
	cached, err := json.Marshal(cachedImage{Size: e.image.size, Layout: e.layout})
	if err != nil {
		return nil, err
	}
	return []attached.New{
		{
			Name: attached.CodePart, Data: code,
			About: attached.Code{SHA256: cpython.MachineCode().Code[runtime.GOARCH].SHA256, Header: head},
		},
		{
			Name: attached.ImagePart, Data: view[shown.Start:shown.End],
			About: attached.Image{Key: e.imageKey(), Start: shown.Start, Cached: cached},
		},
	}, nil
}
