// Package yamlfile decodes small YAML files strictly, so that a typing error is reported with
// its line instead of being ignored.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Decode decodes one YAML document of at most limit bytes. Unknown and duplicate fields are
// errors.
func Decode(r io.Reader, limit int64, into any) error {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return err
	}
	if int64(len(text)) > limit {
		return fmt.Errorf("the file has more than %d bytes", limit)
	}

	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err = decoder.Decode(into)
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty")
	}
	if err != nil {
		return explain(err, into)
	}

	var next yaml.Node
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return errors.New("the file has more than one document")
	}
	return nil
}
