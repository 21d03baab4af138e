package native

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/sessions"
	"github.com/rlmhq/rlm/tiers"
)

// addStates adds the operations on a session's stored state: its snapshots, and the files of its
// snippets.
func (a *api) addStates(h huma.API) {
	const all = "/v1/sessions/{id}/snapshots"
	const one = all + "/{snapshot}"
	read, run := access.Read, access.Run
	add(h, a, http.MethodPost, all, "take-snapshot", "Keep the variables as they are now", run, a.takeSnapshot)
	add(h, a, http.MethodGet, all, "list-snapshots", "List the snapshots, the oldest first", read, a.listSnapshots)
	add(h, a, http.MethodGet, one, "get-snapshot", "Send a snapshot, for rlm connect and Go", read, a.getSnapshot)
	add(h, a, http.MethodDelete, one, "delete-snapshot", "Delete a snapshot", run, a.deleteSnapshot)
	add(h, a, http.MethodPost, one+"/restore", "restore-snapshot",
		"Bring the session back to a snapshot, which needs the contexts of that time", run, a.restoreSnapshot)

	add(h, a, http.MethodGet, "/v1/sessions/{id}/files", "list-files",
		"List the files that snippets wrote below /out", read, a.listFiles)
	add(h, a, http.MethodGet, "/v1/sessions/{id}/files/content", "get-file",
		"Send a file that a snippet wrote below /out", read, a.getFile)
}

type snapshotInfo struct {
	ID      string       `json:"id"`
	Bytes   int64        `json:"bytes"`
	Created time.Time    `json:"created"`
	Left    []tiers.Left `json:"left_behind,omitempty" doc:"values that are not in it; only when it is taken"`
}

func describeSnapshot(s *sessions.Snapshot) snapshotInfo {
	return snapshotInfo{s.ID, s.Bytes, s.Created, s.Left}
}

type snapshotOutput struct {
	Object string `header:"X-Rlm-Object"`
	Body   snapshotInfo
}

// takeSnapshot answers POST /v1/sessions/{id}/snapshots.
func (a *api) takeSnapshot(ctx context.Context, in *byID) (*snapshotOutput, error) {
	taken, err := a.Sessions.TakeSnapshot(ctx, access.Caller(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &snapshotOutput{taken.ID, describeSnapshot(&taken)}, nil
}

type snapshotsOutput struct {
	Body struct {
		Snapshots []snapshotInfo `json:"snapshots" nullable:"false"`
	}
}

// listSnapshots answers GET /v1/sessions/{id}/snapshots.
func (a *api) listSnapshots(ctx context.Context, in *byID) (*snapshotsOutput, error) {
	all, err := a.Sessions.Snapshots(ctx, access.Caller(ctx).Tenant, in.ID)
	if err != nil {
		return nil, err
	}

	out := &snapshotsOutput{}
	out.Body.Snapshots = []snapshotInfo{}
	for i := range all {
		out.Body.Snapshots = append(out.Body.Snapshots, describeSnapshot(&all[i]))
	}
	return out, nil
}

// bySnapshot is an input that contains the IDs of a session and a snapshot.
type bySnapshot struct {
	ID       string `path:"id" maxLength:"100"`
	Snapshot string `path:"snapshot" maxLength:"100"`
}

// getSnapshot answers GET /v1/sessions/{id}/snapshots/{snapshot}.
func (a *api) getSnapshot(ctx context.Context, in *bySnapshot) (*huma.StreamResponse, error) {
	file, err := a.Sessions.OpenSnapshot(ctx, access.Caller(ctx).Tenant, in.ID, in.Snapshot)
	if err != nil {
		return nil, err
	}
	return a.send(file), nil
}

// send sends bytes that a snippet may have chosen, with headers that prevent a browser from showing
// them as a page.
func (a *api) send(content io.Reader) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(h huma.Context) {
		_, w := humago.Unwrap(h)
		head := w.Header()
		head.Set("Content-Type", "application/octet-stream")
		head.Set("Content-Disposition", "attachment")
		head.Set("Content-Security-Policy", "sandbox")
		if _, err := io.Copy(w, content); err != nil {
			a.Log.Debug("a client has gone away", "error", err)
		}
		if closer, ok := content.(io.Closer); ok {
			_ = closer.Close() // the content was only read
		}
	}}
}

// deleteSnapshot answers DELETE /v1/sessions/{id}/snapshots/{snapshot}.
func (a *api) deleteSnapshot(ctx context.Context, in *bySnapshot) (*struct{}, error) {
	return nil, a.Sessions.DeleteSnapshot(ctx, access.Caller(ctx).Tenant, in.ID, in.Snapshot)
}

// restoreSnapshot answers POST /v1/sessions/{id}/snapshots/{snapshot}/restore.
func (a *api) restoreSnapshot(ctx context.Context, in *bySnapshot) (*oneSession, error) {
	if err := a.Sessions.Restore(ctx, access.Caller(ctx).Tenant, in.ID, in.Snapshot); err != nil {
		return nil, err
	}
	return a.getSession(ctx, &byID{in.ID})
}

type filesOutput struct {
	Body struct {
		Files   []results.File `json:"files" nullable:"false" doc:"without their content"`
		Refused []string       `json:"refused,omitempty" doc:"entries that are not there, with the reason"`
		Lost    string         `json:"lost,omitempty" doc:"why files that snippets wrote are gone"`
	}
}

// listFiles answers GET /v1/sessions/{id}/files.
func (a *api) listFiles(ctx context.Context, in *byID) (*filesOutput, error) {
	out := &filesOutput{}
	err := withFolder(func(dir string) error {
		got, err := a.Sessions.Files(ctx, access.Caller(ctx).Tenant, in.ID, dir)
		if err != nil {
			return err
		}
		out.Body.Refused, out.Body.Lost = got.Refused, got.Lost
		out.Body.Files, err = results.ListFolder(dir, -1, map[string]bool{})
		return err
	})
	if out.Body.Files == nil {
		out.Body.Files = []results.File{}
	}

	return out, err
}

type getFileInput struct {
	ID   string `path:"id" maxLength:"100"`
	Name string `query:"name" required:"true" minLength:"1" maxLength:"4096" doc:"file of the list"`
}

// getFile answers GET /v1/sessions/{id}/files/content.
func (a *api) getFile(ctx context.Context, in *getFileInput) (*huma.StreamResponse, error) {
	var content []byte
	err := withFolder(func(dir string) error {
		if _, err := a.Sessions.Files(ctx, access.Caller(ctx).Tenant, in.ID, dir); err != nil {
			return err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer root.Close()
		if content, err = root.ReadFile(in.Name); err != nil {
			return problem.NotFound("file", in.Name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	return a.send(bytes.NewReader(content)), nil
}
