package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// sent is a message in a request. Its content is a string, or a list of texts and pictures.
type sent struct {
	Role    llm.Role        `json:"role"`
	Content json.RawMessage `json:"content"`
}

// piece is an item of a message's content. Each format has its own type for pictures.
type piece struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	Source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

// decodeMessages decodes the messages of a request, in which pictures have the type picture.
func decodeMessages(messages []sent, picture string) ([]llm.Message, error) {
	all := make([]llm.Message, len(messages))
	for i, m := range messages {
		all[i].Role = m.Role
		if json.Unmarshal(m.Content, &all[i].Content) == nil {
			continue
		}

		var pieces []piece
		if err := decodeStrictly(m.Content, &pieces); err != nil {
			return nil, fmt.Errorf("messages.%d.content: %w", i, err)
		}
		for _, p := range pieces {
			if p.Type == "text" {
				all[i].Content += p.Text
				continue
			}
			image, err := p.image(picture)
			if err != nil {
				return nil, fmt.Errorf("messages.%d.content: %w", i, err)
			}
			all[i].Images = append(all[i].Images, image)
		}
	}
	return all, nil
}

func (p piece) image(want string) (llm.Image, error) {
	image, encoded := llm.Image{Type: p.Source.MediaType}, p.Source.Data
	if p.Type == "image_url" {
		head, data, _ := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ",")
		image.Type, encoded = strings.TrimSuffix(head, ";base64"), data
	}

	var err error
	if image.Data, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return image, err
	}
	if p.Type != want || len(image.Data) == 0 || !strings.HasPrefix(image.Type, "image/") {
		return image, fmt.Errorf("%d bytes of %q in a piece of type %q", len(image.Data), image.Type, p.Type)
	}
	return image, nil
}
