package wasm

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/aot"
	"github.com/rlmhq/rlm/internal/attached"
)

// attachedCode maps the machine code behind this program, if it is the blob with that hash.
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

// adoptAttached uses the image behind this program, if it was prepared for this key.
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
