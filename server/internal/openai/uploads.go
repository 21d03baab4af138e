package openai

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/files"
	"github.com/rlmhq/rlm/server/internal/gate"
)

// file is the wire format of an uploaded file.
type file struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Bytes    int64  `json:"bytes"`
	Created  int64  `json:"created_at"`
	Filename string `json:"filename"`
	Purpose  string `json:"purpose"`
	Status   string `json:"status"`
}

func describeFile(f *files.File) file {
	return file{f.ID, "file", f.Bytes, f.Created.Unix(), f.Name, f.Purpose, "processed"}
}

// Limits on a form, except its file, in bytes.
const (
	maxField = 512      // maximum size of a field that is not a file
	maxHead  = 16 << 10 // maximum size of a field's head
)

// form is a form whose field heads are bounded, because the library's reader keeps up to 10 MiB of
// each head in memory.
type form struct {
	parts *multipart.Reader
	body  *headReader
	part  *multipart.Part // the last field, or nil
}

// headReader is a body whose reads fail if a field head is too long.
type headReader struct {
	io.Reader
	left   int // remaining bytes of the current head
	inHead bool
}

// Read implements [io.Reader].
func (h *headReader) Read(into []byte) (int, error) {
	if h.inHead && h.left <= 0 {
		return 0, problem.Bad("file", "a field of the form has a head of more than %d bytes", maxHead)
	}
	n, err := h.Reader.Read(into)
	h.left -= n
	return n, err
}

// next returns the next field of the form. The error is for the client.
func (f *form) next() (field *multipart.Part, err error) {
	if f.part != nil {
		_, err = io.Copy(io.Discard, f.part) // the rest of the last field
	}
	if err == nil {
		f.body.left, f.body.inHead = maxHead, true
		f.part, err = f.parts.NextPart()
		f.body.inHead = false
	}

	var tooLarge *http.MaxBytesError
	var known *problem.Error
	switch {
	case errors.Is(err, io.EOF):
		return nil, problem.Bad("file", "the form has no field file")
	case err == nil, errors.As(err, &tooLarge), errors.As(err, &known):
		return f.part, err
	}
	return nil, problem.Bad("file", "cannot read the form: %v", err)
}

// createFile answers POST /v1/files. It writes the file to disk as it arrives.
func (a *API) createFile(w http.ResponseWriter, r *http.Request) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return problem.Bad("file", "send a form, multipart/form-data, with the fields purpose and file")
	}

	body := &headReader{Reader: r.Body}
	sent := &form{parts: multipart.NewReader(body, params["boundary"]), body: body}
	k := access.Caller(r.Context())
	purpose := ""
	for {
		field, err := sent.next()
		if err != nil {
			return err
		}
		switch field.FormName() {
		case "purpose":
			text, err := io.ReadAll(io.LimitReader(field, maxField+1))
			if err != nil {
				return problem.Bad("purpose", "cannot read the form: %v", err)
			}
			purpose = string(text)
		case "file":
			made, err := a.Files.Create(r.Context(), k.Tenant, field.FileName(), purpose, field, k.Limits.Files)
			if err != nil {
				return err
			}
			return a.finishFile(w, r, sent, &made, purpose)
		}
	}
}

// finishFile reads the fields after the file, because some clients send the purpose there.
func (a *API) finishFile(
	w http.ResponseWriter, r *http.Request, sent *form, made *files.File, purpose string,
) error {
	for purpose == "" {
		field, err := sent.next()
		if err != nil {
			break
		}
		if field.FormName() == "purpose" {
			text, _ := io.ReadAll(io.LimitReader(field, maxField)) // empty in a broken form
			purpose = string(text)
		}
	}

	if made.Purpose != purpose {
		if err := a.Files.SetPurpose(r.Context(), made, purpose); err != nil {
			return err
		}
	}
	w.Header().Set(gate.ObjectHeader, made.ID)
	writeJSON(w, http.StatusOK, describeFile(made))
	return nil
}

func (a *API) getFile(w http.ResponseWriter, r *http.Request) error {
	f, err := a.Files.Get(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"))
	if err == nil {
		writeJSON(w, http.StatusOK, describeFile(&f))
	}
	return err
}

// readFile answers GET /v1/files/{id}/content. Its headers prevent a browser from showing the file
// as a page of this server.
func (a *API) readFile(w http.ResponseWriter, r *http.Request) error {
	f, err := a.Files.Get(r.Context(), access.Caller(r.Context()).Tenant, r.PathValue("id"))
	if err != nil {
		return err
	}
	content, err := a.Files.Open(r.Context(), f.ID)
	if err != nil {
		return err
	}
	defer content.Close()

	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	http.ServeContent(w, r, "", f.Created, content)
	return nil
}

// limitOf parses the requested number of list entries.
func limitOf(r *http.Request, standard, most int) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, problem.Bad("limit", "give a limit from 1 to %d", most)
	}
	return n, nil
}

// page is the wire format of a list.
type page[T any] struct {
	Object  string `json:"object"`
	Data    []T    `json:"data"`
	FirstID string `json:"first_id,omitempty"`
	LastID  string `json:"last_id,omitempty"`
	HasMore bool   `json:"has_more"`
}

func (a *API) listFiles(w http.ResponseWriter, r *http.Request) error {
	limit, err := limitOf(r, 1_000, 10_000)
	if err != nil {
		return err
	}
	all, err := a.Files.List(r.Context(), access.Caller(r.Context()).Tenant, r.FormValue("purpose"),
		r.FormValue("after"), limit+1)
	if err != nil {
		return err
	}

	list := page[file]{Object: "list", Data: []file{}, HasMore: len(all) > limit}
	for i := range all[:min(len(all), limit)] {
		list.Data = append(list.Data, describeFile(&all[i]))
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = list.Data[0].ID, list.Data[n-1].ID
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (a *API) deleteFile(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := a.Files.Delete(r.Context(), access.Caller(r.Context()).Tenant, id); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": id, "object": "file", "deleted": true})
	return nil
}
