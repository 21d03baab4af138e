package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// embeddingRequest is the body of POST /v1/embeddings.
type embeddingRequest struct {
	Model          string          `json:"model"`
	Input          json.RawMessage `json:"input"`
	EncodingFormat string          `json:"encoding_format"`
	Dimensions     *whole          `json:"dimensions"`
}

// maxEmbedded is the maximum number of texts in a request for vectors.
const maxEmbedded = 2_048

// read returns the texts.
func (e *embeddingRequest) read() (texts words, err error) {
	if json.Unmarshal(e.Input, &texts) != nil {
		return nil, problem.Bad("input", "give a text or a list of texts: this server takes no lists of tokens "+
			"(LangChain sends texts with check_embedding_ctx_length=False)")
	}
	if len(texts) == 0 || len(texts) > maxEmbedded {
		return nil, problem.Bad("input", "there are %d texts: give 1 to %d", len(texts), maxEmbedded)
	}
	for i, text := range texts {
		if text == "" {
			return nil, problem.Bad("input", "text %d is empty", i)
		}
	}

	if n := e.Dimensions; n != nil && (*n < 1 || *n > 1<<16) {
		return nil, problem.Bad("dimensions", "give a positive number of dimensions")
	}
	switch e.EncodingFormat {
	case "", "float", "base64":
		return texts, nil
	}
	return nil, problem.Bad("encoding_format", "unknown format %.40q: give float or base64", e.EncodingFormat)
}

// vector is an entry of the list of vectors.
type vector struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embed answers POST /v1/embeddings. It passes the texts on to the provider of the model.
func (a *API) embed(w http.ResponseWriter, r *http.Request) error {
	var e embeddingRequest
	if err := readJSON(r, &e); err != nil {
		return err
	}
	texts, err := e.read()
	if err != nil {
		return err
	}
	ask := runs.Embedding{Model: e.Model, Texts: texts}
	if e.Dimensions != nil {
		if ask.Extra, err = marshal(fields{"dimensions": *e.Dimensions}); err != nil {
			return err
		}
	}

	vectors, used, spent, err := a.Runs.Embed(r.Context(), access.Caller(r.Context()), ask)
	if err != nil {
		return err
	}

	data := make([]vector, len(vectors))
	for i, v := range vectors {
		data[i] = vector{"embedding", i, v}
		if e.EncodingFormat == "base64" {
			data[i].Embedding = encodeVector(v)
		}
	}
	writeJSON(w, http.StatusOK, fields{
		"object": "list", "data": data, "model": e.Model,
		"usage": fields{"prompt_tokens": used.InputTokens, "total_tokens": used.InputTokens},
		"rlm":   details{Calls: spent.Calls, USD: spent.USD},
	})
	return nil
}

// encodeVector returns the numbers of a vector in the format of the official clients, which is the
// base64 of little-endian 32-bit floats.
func encodeVector(v []float32) string {
	raw := make([]byte, 0, 4*len(v))
	for _, n := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(n))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
