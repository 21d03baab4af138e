package answers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/data/mediatype"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// The bounds on the pictures of one query. The limits of servers are similar.
const (
	maxImages     = 20
	maxImage      = 8 << 20 // bytes
	maxImageBytes = 20 << 20
)

// seenTypes are the types of pictures that the models of all providers accept.
var seenTypes = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true,
}

// readImages reads a list of pictures or a single picture. Each is base64, optionally as a data
// URL.
func readImages(value tiers.Value) ([]llm.Image, error) {
	if value == nil {
		return nil, nil
	}

	texts := make([]string, 1)
	err := json.Unmarshal(value, &texts[0])
	if err != nil {
		err = json.Unmarshal(value, &texts)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("images must be a list of pictures, not %s", clip(value))
	case len(texts) > maxImages:
		return nil, fmt.Errorf("%d images, but at most %d are allowed", len(texts), maxImages)
	}

	images, room := make([]llm.Image, len(texts)), maxImageBytes
	for i, text := range texts {
		if images[i], err = readImage(text, min(maxImage, room)); err != nil {
			return nil, fmt.Errorf("image %d: %w", i, err)
		}
		room -= len(images[i].Data)
	}
	return images, nil
}

// readImage decodes a picture of at most that many bytes.
func readImage(text string, most int) (llm.Image, error) {
	if head, data, isURL := strings.Cut(text, ","); isURL && strings.HasPrefix(head, "data:") {
		text = data
	}
	if size := base64.StdEncoding.DecodedLen(len(text)); size > most+2 { // 2 for the padding
		return llm.Image{}, tooLarge(size, most)
	}

	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return llm.Image{}, errors.New("it is not base64 of a picture")
	}
	if len(data) > most {
		return llm.Image{}, tooLarge(len(data), most)
	}
	kind := mediatype.Detect(data)
	if !seenTypes[kind] {
		return llm.Image{}, fmt.Errorf("it is not a picture that models take (%s): "+
			"give PNG, JPEG, GIF or WebP", kind)
	}
	return llm.Image{Type: kind, Data: data}, nil
}

func tooLarge(size, most int) error {
	return fmt.Errorf("it has %s bytes, but %s are left of %s per image and %s per call: make it smaller",
		quantity.Comma(size), quantity.Comma(most),
		quantity.IBytes(maxImage), quantity.IBytes(maxImageBytes))
}
