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

// PackageFolder is the folder of an image's additional packages. Python's path does not include it
// at the start; tier docker adds it after the first process has attested the wall.
const PackageFolder = "/usr/lib/rlm/packages"

// The labels of this project's images.
const (
	labelKind     = "rlm.image"
	labelRecipe   = "rlm.recipe"
	labelVersion  = "rlm.version"
	labelPackages = "rlm.packages"
	labelModules  = "rlm.modules"
	labelWith     = "rlm.with"
)

// Image is an image known to the daemon.
type Image struct {
	// ID is the digest of the image's configuration, "sha256:…", and thus identifies its whole
	// content.
	ID string
	// Names are the image's references.
	Names []string
	// Kind, Recipe and Version are the values with which the image was imported; see ImageSpec.
	// They are empty for images of other projects.
	Kind, Recipe, Version string
	// Packages, Modules and With describe the image's additions to its recipe, as in ImageSpec.
	Packages, Modules, With string
	// Size is the size of the image, in bytes.
	Size    int64
	Created time.Time
}

// withLabels returns the image with the fields that its labels record.
func (i Image) withLabels(labels map[string]string) Image {
	i.Kind, i.Recipe, i.Version = labels[labelKind], labels[labelRecipe], labels[labelVersion]
	i.Packages, i.Modules = labels[labelPackages], labels[labelModules]
	i.With = labels[labelWith]
	return i
}

// Image finds an image by a reference or an ID. The error wraps [ErrNoImage] if the image does not
// exist.
func (c *Client) Image(ctx context.Context, name string) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	is, err := c.api.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return Image{}, fmt.Errorf("%s: %w", name, ErrNoImage)
	}
	if err != nil {
		return Image{}, c.explain("inspect an image", err)
	}

	found := Image{ID: is.ID, Names: is.RepoTags, Size: is.Size}
	found.Created, _ = time.Parse(time.RFC3339Nano, is.Created) // zero if unknown
	if is.Config != nil {
		found = found.withLabels(is.Config.Labels)
	}
	return found, nil
}

// Images lists this project's images.
func (c *Client) Images(ctx context.Context) ([]Image, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	found, err := c.api.ImageList(ctx, image.ListOptions{
		Filters: filters.NewArgs(filters.Arg("label", labelKind)),
	})
	if err != nil {
		return nil, c.explain("list images", err)
	}

	list := make([]Image, len(found))
	for i := range found {
		f := &found[i]
		list[i] = Image{
			ID: f.ID, Names: f.RepoTags, Size: f.Size, Created: time.Unix(f.Created, 0),
		}.withLabels(f.Labels)
	}
	return list, nil
}

// ImageSpec describes an image to import.
type ImageSpec struct {
	// Name is the image's reference.
	Name string
	// Kind is the purpose of the image, Recipe is the hash of its recipe, and Version is the
	// version of its interpreter or compiler.
	Kind, Recipe, Version string
	// Packages are the additional packages, each as NAME==VERSION, and Modules the names that
	// Python can import from them; both are separated by spaces. With is the user's request for
	// them. None of the three may contain characters that need quotes.
	Packages, Modules, With string
	// Program is the image's default command.
	Program string
}

// changes describes an image as Dockerfile instructions.
func (s ImageSpec) changes() []string {
	return []string{
		fmt.Sprintf("USER %d:%d", User, User),
		"WORKDIR " + workDir,
		fmt.Sprintf("ENTRYPOINT [%q]", s.Program),
		fmt.Sprintf("LABEL %s=%s %s=%s %s=%s %s=%q %s=%q %s=%q",
			labelKind, s.Kind, labelRecipe, s.Recipe, labelVersion, s.Version,
			labelPackages, s.Packages, labelModules, s.Modules, labelWith, s.With),
	}
}

// Import creates an image from the files of a tar stream and returns its ID. The zero value of
// ImageSpec creates an image without a name.
func (c *Client) Import(ctx context.Context, files io.Reader, spec ImageSpec) (string, error) {
	var options image.ImportOptions
	if spec != (ImageSpec{}) {
		options.Changes = spec.changes()
	}
	source := image.ImportSource{Source: files, SourceName: "-"}
	answer, err := c.api.ImageImport(ctx, source, spec.Name, options)
	if err != nil {
		return "", c.explain("import an image", err)
	}
	defer answer.Close()
	return readImportedID(answer)
}

// readImportedID reads the daemon's messages about an import. The last message contains the ID.
func readImportedID(answer io.Reader) (string, error) {
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
			return "", fmt.Errorf("cannot import an image: the daemon ended the transfer early: %w", err)
		case message.Error != "":
			return "", fmt.Errorf("cannot import an image: %s", message.Error)
		case message.Status != "":
			id = message.Status
		}
	}
}

// RemoveImage removes an image. It returns nil if the image does not exist.
func (c *Client) RemoveImage(ctx context.Context, name string) error {
	_, err := c.api.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return c.explain("remove an image", err)
	}
	return nil
}
