package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// NewImages makes the command rlm images.
func NewImages(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Build and list the images of tier docker",
		Long: "Build and list the container images in which tier docker runs snippets.\n" +
			"DOCKER_HOST names the daemon; the default is the system's daemon.",
	}

	cmd.AddCommand(newImagesBuild(e), newImagesList(e))
	return cmd
}

func newImagesBuild(e *cli.Env) *cobra.Command {
	var options images.Options
	var quiet bool
	cmd := &cobra.Command{
		Use:   "build [python|go|all...]",
		Short: "Build the images of tier docker",
		Long: "Build all images, or the named ones. The python image consists of Debian's packages,\n" +
			"in locked versions; --latest takes the versions that Debian offers today. The go\n" +
			"image contains Go's official toolchain, which the go command downloads as a module.\n" +
			"You need no image registry, and only the daemon needs root. The command keeps\n" +
			"existing images; --again and --latest rebuild them.",
		RunE: func(cmd *cobra.Command, kinds []string) error {
			options.Host = wiring.DockerHost()
			options.Index = wiring.IndexURL(e.Settings)
			if !quiet {
				options.Progress = e.Stderr
			}
			return buildImages(cmd.Context(), e.Stdout, kinds, options)
		},
	}

	flags := cmd.Flags()
	flags.BoolVar(&options.Again, "again", false, "rebuild existing images")
	flags.BoolVar(&options.Latest, "latest", false,
		"rebuild with the packages that Debian offers today, not the locked ones")
	flags.StringSliceVar(&options.With, "with", nil,
		"build a separate image with additional Python `packages`, as NAME or NAME==VERSION; repeatable")
	flags.StringVar(&options.Name, "name", "",
		"`name` of the image with additional packages, for --image (default: derived from the packages)")
	flags.StringVar(&options.Lock, "lock", "",
		"`file` with the packages' versions and digests: used if it exists, otherwise written")
	config.AddFlags(flags, config.Named("index_url"))
	flags.BoolVar(&quiet, "quiet", false, "print no progress on stderr")
	flags.StringVar(&options.WorkDir, "work-dir", "",
		"`folder` that keeps the downloads (default: a temporary folder)")
	flags.StringVar(&options.Mirror, "mirror", "",
		"`URL` of a mirror of Debian's packages (default http://deb.debian.org)")

	return cmd
}

// buildImages builds the images of the given kinds, or of all kinds if none are given.
func buildImages(ctx context.Context, out io.Writer, kinds []string, options images.Options) error {
	if err := checkPackages(&kinds, &options); err != nil {
		return cli.Usage(err)
	}
	if len(kinds) == 0 || slices.Contains(kinds, "all") {
		kinds = []string{images.Python, images.Go}
	}
	var recipes []images.Recipe
	for _, kind := range kinds {
		recipe, err := images.Find(kind)
		if err != nil {
			return cli.Usage(err)
		}
		recipes = append(recipes, recipe)
	}

	for _, recipe := range recipes {
		built, err := images.Build(ctx, recipe, options)
		if err == nil {
			err = showBuilt(out, built)
		}
		if err != nil {
			return imagesError(err)
		}
	}

	return nil
}

// checkPackages checks the flags for additional packages.
func checkPackages(kinds *[]string, options *images.Options) error {
	switch {
	case len(options.With) == 0 && (options.Name != "" || options.Lock != ""):
		return errors.New("--name and --lock need an image with additional packages: add --with")
	case len(options.With) == 0:
		return nil
	case options.Latest:
		return errors.New("--latest updates Debian's packages: to update the packages of --with, use --again")
	case len(*kinds) == 0:
		*kinds = []string{images.Python}
	case !slices.Equal(*kinds, []string{images.Python}):
		return errors.New("--with adds packages only to the image python")
	}
	return wiring.CheckImageName(options.Name)
}

// imagesError adds the exit code to a failure. An unusable Docker host is a usage error.
func imagesError(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return cli.Usage(err)
	}
	return cli.Broken(err)
}

func showBuilt(out io.Writer, b images.Image) error {
	took := "already built"
	if b.Took > 0 {
		took = "built in " + b.Took.Round(100*time.Millisecond).String()
	}
	_, err := fmt.Fprintf(out, "%s %s %s (%s)\n", strings.Join(b.Names, ", "), b.ID, b.Version, took)
	if err == nil && len(b.Packages) > 0 {
		_, err = fmt.Fprintln(out, "packages:", strings.Join(b.Packages, ", "))
	}
	return err
}

// listedImage is an image in the output of --json.
type listedImage struct {
	Kind    string   `json:"kind"`
	ID      string   `json:"id,omitempty"`
	Names   []string `json:"names"`
	Version string   `json:"version,omitempty"`
	// Packages are the additional packages of a python image, each as NAME==VERSION.
	Packages []string `json:"packages,omitempty"`
	Bytes    int64    `json:"bytes,omitempty"`
	Created  string   `json:"created,omitempty"`
	// Used reports whether this version of the program uses the image.
	Used bool `json:"used"`
}

func newImagesList(e *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the images in the daemon", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := images.List(cmd.Context(), wiring.DockerHost())
			if err != nil {
				return imagesError(err)
			}
			list := []listedImage{}
			for _, image := range found {
				list = append(list, describeImage(image))
			}

			if asJSON {
				return json.NewEncoder(e.Stdout).Encode(list)
			}
			return showImages(e.Stdout, list)
		},
	}

	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

// describeImage returns an image in the form that --json shows.
func describeImage(image images.Image) listedImage {
	listed := listedImage{
		Kind: image.Kind, ID: image.ID, Names: image.Names, Version: image.Version, Packages: image.Packages,
		Bytes: image.Size, Used: image.Used,
	}
	if image.ID != "" {
		listed.Created = image.Created.UTC().Format(time.RFC3339)
	}

	return listed
}

func showImages(out io.Writer, list []listedImage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "kind\tname\tid\tversion\tsize\tnote")
	for _, image := range list {
		size := quantity.Bytes(image.Bytes)
		note := "of another version of this program"
		switch {
		case image.ID == "":
			size, note = "", "not built yet: rlm images build "+image.Kind
		case image.Used:
			note = notePackages(image.Packages)
		}

		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", image.Kind,
			strings.Join(image.Names, ", "), image.ID, image.Version, size, note)
	}

	return w.Flush()
}

// shownPackages is the maximum number of packages per image in the table; --json lists all.
const shownPackages = 4

// notePackages names the additional packages of an image.
func notePackages(packages []string) string {
	if len(packages) <= shownPackages {
		return strings.Join(packages, ", ")
	}
	return fmt.Sprintf("%s and %d more packages",
		strings.Join(packages[:shownPackages], ", "), len(packages)-shownPackages)
}
