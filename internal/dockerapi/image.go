package dockerapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// Image is an image that the daemon has.
type Image struct {
	// ID is the digest of its configuration, "sha256:…", and so of all it holds.
	ID string
	// Names are its references.
	Names  []string
	Labels map[string]string
	// Size is in bytes.
	Size    int64
	Created time.Time
}

// Image finds an image by a reference or an ID. The error is [ErrNoImage] if it is
// not there.
func (c *Client) Image(ctx context.Context, name string) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	is, err := c.api.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return Image{}, fmt.Errorf("%s: %w", name, ErrNoImage)
	}
	if err != nil {
		return Image{}, c.explain("look at an image", err)
	}
	found := Image{ID: is.ID, Names: is.RepoTags, Size: is.Size}
	if is.Config != nil {
		found.Labels = is.Config.Labels
	}
	found.Created, _ = time.Parse(time.RFC3339Nano, is.Created) // unknown is the zero time
	return found, nil
}

// Images lists the images with a label.
func (c *Client) Images(ctx context.Context, label string) ([]Image, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := c.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, c.explain("list images", err)
	}
	var list []Image
	for i := range found {
		f := &found[i]
		list = append(list, Image{ID: f.ID, Names: f.RepoTags, Labels: f.Labels, Size: f.Size, Created: time.Unix(f.Created, 0)})
	}
	return list, nil
}

// Import makes an image of the files in a tar stream, gives it a name and applies
// changes in the words of a Dockerfile. It returns its ID.
func (c *Client) Import(ctx context.Context, files io.Reader, name string, changes []string) (string, error) {
	answer, err := c.api.ImageImport(ctx, image.ImportSource{Source: files, SourceName: "-"}, name, image.ImportOptions{Changes: changes})
	if err != nil {
		return "", c.explain("import an image", err)
	}
	defer answer.Close()
	messages := json.NewDecoder(answer)
	id := ""
	for {
		var message struct {
			Status string `json:"status"`
			Error  string `json:"error"`
		}
		err := messages.Decode(&message)
		switch {
		case errors.Is(err, io.EOF) && id != "":
			return id, nil
		case err != nil:
			return "", fmt.Errorf("cannot import an image: the daemon broke off: %w", err)
		case message.Error != "":
			return "", fmt.Errorf("cannot import an image: %s", message.Error)
		case message.Status != "":
			id = message.Status
		}
	}
}

// RemoveImage removes an image. One that is not there is no error.
func (c *Client) RemoveImage(ctx context.Context, name string) error {
	_, err := c.api.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return c.explain("remove an image", err)
	}
	return nil
}
