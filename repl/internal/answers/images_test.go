package answers

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

const (
	png  = "\x89PNG\r\n\x1a\n"
	jpeg = "\xff\xd8\xff\xe0"
)

// encodeImages returns pictures as a guest sends them.
func encodeImages(images ...string) string {
	texts := make([]string, len(images))
	for i, image := range images {
		texts[i] = base64.StdEncoding.EncodeToString([]byte(image))
	}
	list, _ := json.Marshal(texts)
	return string(list)
}

func TestImagesReachTheQuery(t *testing.T) {
	named := func(function, prompt, images string) tiers.Call {
		call := callOf(function, prompt)
		call.Named = map[string]tiers.Value{"images": tiers.Value(images)}
		return call
	}
	large := png + strings.Repeat("x", maxImage-len(png))
	for _, c := range []struct {
		call  tiers.Call
		asked string
	}{
		{named("llm_query", `"p"`, encodeImages(png, jpeg)), `leaf|"p"||||image/png|image/jpeg`},
		{named("llm_query", `"p"`, `"data:image/gif;base64,R0lGODlh"`), `leaf|"p"||||image/gif`},
		{named("llm_query", `"p"`, `[]`), `leaf|"p"|||`},
		{
			callOf("llm_query_batched", fmt.Sprintf(`["p", {"prompt": "q", "images": %s}]`, encodeImages(png))),
			"many|\"p\"|||\nmany|\"q\"||||image/png",
		},

		{
			named("llm_query", `"p"`, encodeImages(large+"y")),
			"image 0: it has 8,388,609 bytes, but 8,388,608 are left of 8.0 MiB",
		},
		{
			named("llm_query", `"p"`, encodeImages(large, large, large)),
			"image 2: it has 8,388,609 bytes, but 4,194,304 are left",
		},
		{named("llm_query", `"p"`, encodeImages(make([]string, 21)...)), "21 images, but at most 20"},
		{
			named("llm_query", `"p"`, encodeImages("<svg/>")),
			"image 0: it is not a picture that models take (text/plain",
		},
		{named("llm_query", `"p"`, encodeImages("")), "image 0: it is not a picture"},
		{named("llm_query", `"p"`, `["%"]`), "image 0: it is not base64"},
		{named("llm_query", `"p"`, `{"a": 1}`), `images must be a list of pictures, not {"a": 1}`},
		{named("rlm_query", `"p"`, encodeImages(png)), `no parameter "images"`},
	} {
		got, err := askNoting(t, c.call)
		if !strings.Contains(got, c.asked) || err == nil && got != c.asked {
			t.Errorf("%s: %q, want %q", c.call.Function, got, c.asked)
		}
	}
}

func FuzzReadImages(f *testing.F) {
	f.Add([]byte(encodeImages(png, jpeg)))
	f.Add([]byte(`"data:image/gif;base64,R0lGODlh"`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		images, err := readImages(value)
		if len(images) > maxImages || err != nil && images != nil {
			t.Errorf("%d images, %v", len(images), err)
		}
		for _, image := range images {
			if !seenTypes[image.Type] || len(image.Data) > maxImage {
				t.Errorf("%s of %d bytes", image.Type, len(image.Data))
			}
		}
	})
}
