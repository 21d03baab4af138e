package images

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// Image is an image of this project.
type Image struct {
	// Kind is its purpose.
	Kind string
	// ID is its digest, by which it can be pinned. It is empty if the image has not been built.
	ID string
	// Names are its references.
	Names []string
	// Packages are the additional packages of an image python, each as NAME==VERSION.
	Packages []string
	// Version is the version of what runs in it.
	Version string
	// Size is in bytes.
	Size    int64
	Created time.Time
	// Used reports whether this program uses it. Others were made by another recipe.
	Used bool
	// Took is the duration of Build. It is zero if the image already existed.
	Took time.Duration
}

// List returns the images that a Docker daemon has, and those that this program would use but the
// daemon lacks. The host is a URL as in DOCKER_HOST; empty means the system's own socket. The
// error wraps errors.ErrUnsupported if that host cannot be used.
func List(ctx context.Context, host string) ([]Image, error) {
	docker, err := dockerapi.New(host)
	if err != nil {
		return nil, err
	}
	defer docker.Close()
	found, err := docker.Images(ctx)
	if err != nil {
		return nil, err
	}
	return describe(found)
}

// describe adds this program's knowledge about images.
func describe(found []dockerapi.Image) ([]Image, error) {
	var list []Image
	for _, is := range found {
		list = append(list, describeOne(is))
	}

	for _, kind := range kinds {
		used := func(i Image) bool { return i.Kind == kind && i.Used && len(i.Packages) == 0 }
		if slices.ContainsFunc(list, used) {
			continue
		}
		recipe, err := Find(kind)
		if err != nil {
			return nil, err
		}
		list = append(list, Image{Kind: kind, Names: []string{recipe.Name}})
	}
	return list, nil
}

// describeOne adds this program's knowledge about an image.
func describeOne(is dockerapi.Image) Image {
	recipe, err := Find(is.Kind)
	return Image{
		Kind:     is.Kind,
		ID:       is.ID,
		Names:    is.Names,
		Packages: strings.Fields(is.Packages),
		Version:  is.Version,
		Size:     is.Size,
		Created:  is.Created,
		Used:     err == nil && is.Recipe == recipe.Hash && len(is.Names) > 0,
	}
}
