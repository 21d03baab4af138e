package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/dockerapi"
)

// dockerHost is the address of the Docker daemon, as all its programs take it.
func dockerHost() string { return os.Getenv("DOCKER_HOST") }

func newImages(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "images", Short: "Build and list the images of tier docker",
		Long: "Build and list the container images that tier docker runs snippets in. The\nDocker daemon is the one that DOCKER_HOST names, or the system's own.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImagesBuild(e), newImagesList(e))
	return cmd
}

func newImagesBuild(e *env) *cobra.Command {
	var options images.BuildOptions
	var again, quiet bool
	cmd := &cobra.Command{
		Use: "build [python|go|all...]", Short: "Make the images that snippets run in",
		Long: "Make the images, all or the kinds named: python from Debian's packages, which apt\n" +
			"downloads and verifies, and go from the toolchain that the Go project publishes as a\n" +
			"module, which the go command does. No registry is needed, and no root but the daemon's.\n" +
			"An image that is there already is kept, unless --again asks for Debian's updates.",
		RunE: func(cmd *cobra.Command, kinds []string) error {
			if len(kinds) == 0 || slices.Contains(kinds, "all") {
				kinds = images.Kinds()
			}
			var recipes []images.Recipe
			for _, kind := range kinds {
				recipe, err := images.Find(kind)
				if err != nil {
					return &exitError{exitUsage, err}
				}
				recipes = append(recipes, recipe)
			}
			docker, err := dockerapi.New(dockerHost())
			if err != nil {
				return &exitError{exitUsage, err}
			}
			defer docker.Close()
			if !quiet {
				options.Progress = e.stderr
			}
			for _, recipe := range recipes {
				if !again {
					if there, err := docker.Image(cmd.Context(), recipe.Name()); err == nil {
						if err := showBuilt(e.stdout, images.Built{ID: there.ID, Name: recipe.Name(), Version: there.Labels[images.VersionLabel]}); err != nil {
							return &exitError{exitBroken, err}
						}
						continue
					}
				}
				built, err := images.Build(cmd.Context(), docker, recipe, options)
				if err == nil {
					err = showBuilt(e.stdout, built)
				}
				if err != nil {
					return &exitError{exitBroken, err}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&again, "again", false, "build anew what is there already")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "say nothing about the progress")
	cmd.Flags().StringVar(&options.WorkDir, "work-dir", "", "a folder that keeps what was downloaded (default: a temporary one)")
	cmd.Flags().StringVar(&options.Mirror, "mirror", "", "where Debian's packages come from (default http://deb.debian.org)")
	return cmd
}

func showBuilt(out io.Writer, b images.Built) error {
	took := "there already"
	if b.Took > 0 {
		took = "built in " + b.Took.Round(100*time.Millisecond).String()
	}
	_, err := fmt.Fprintf(out, "%s %s %s (%s)\n", b.Name, b.ID, b.Version, took)
	return err
}

// listedImage is an image in the words of --json.
type listedImage struct {
	Kind    string   `json:"kind"`
	ID      string   `json:"id,omitempty"`
	Names   []string `json:"names"`
	Version string   `json:"version,omitempty"`
	Bytes   int64    `json:"bytes,omitempty"`
	Created string   `json:"created,omitempty"`
	// Used says that this program uses it: another version's recipe differs.
	Used bool `json:"used"`
}

func newImagesList(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the images that the daemon has", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			docker, err := dockerapi.New(dockerHost())
			if err != nil {
				return &exitError{exitUsage, err}
			}
			defer docker.Close()
			found, err := docker.Images(cmd.Context(), images.Label)
			if err != nil {
				return &exitError{exitBroken, err}
			}
			list, err := describeImages(found)
			if err != nil {
				return &exitError{exitBroken, err}
			}
			if asJSON {
				return json.NewEncoder(e.stdout).Encode(list)
			}
			return showImages(e.stdout, list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array instead")
	return cmd
}

// describeImages are the images that are there, and those that this program would
// use and are not.
func describeImages(found []dockerapi.Image) ([]listedImage, error) {
	list, there := []listedImage{}, map[string]bool{}
	for _, image := range found {
		recipe, err := images.Find(image.Labels[images.Label])
		used := err == nil && image.Labels[images.RecipeLabel] == recipe.Hash && len(image.Names) > 0
		there[recipe.Kind] = there[recipe.Kind] || used
		list = append(list, listedImage{
			Kind: image.Labels[images.Label], ID: image.ID, Names: image.Names, Version: image.Labels[images.VersionLabel], Bytes: image.Size,
			Created: image.Created.UTC().Format(time.RFC3339), Used: used,
		})
	}
	for _, kind := range images.Kinds() {
		if there[kind] {
			continue
		}
		recipe, err := images.Find(kind)
		if err != nil {
			return nil, err
		}
		list = append(list, listedImage{Kind: kind, Names: []string{recipe.Name()}})
	}
	return list, nil
}

func showImages(out io.Writer, list []listedImage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "kind\tname\tid\tversion\tsize\tnote")
	for _, image := range list {
		size, note := humanize.Bytes(uint64(max(0, image.Bytes))), "of another version of this program"
		switch {
		case image.ID == "":
			size, note = "", "not built yet: rlm images build "+image.Kind
		case image.Used:
			note = ""
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", image.Kind, strings.Join(image.Names, ", "), image.ID, image.Version, size, note)
	}
	return w.Flush()
}
