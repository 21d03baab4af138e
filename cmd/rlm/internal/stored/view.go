package stored

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/viewer"
)

const viewLong = `Show runs in a browser: the tree of loops, turns, snippets and calls, with their code, output,
times, tokens and cost.

A RUN is the name of a stored run (see "rlm runs list"), a folder that --trace wrote, a folder of
such folders, or a file: a trajectory, or a run log of "rlm runs export". Without RUN, the
viewer shows all stored runs. The page follows a run that has not ended.

The viewer prints its address. Only this machine can reach the address, and a part of it is
secret. Ctrl-C ends the viewer. --export writes one run as a single file that needs no server.`

// viewSettings are the flags of rlm view.
type viewSettings struct{ listen, export string }

// NewViewer makes the command rlm view.
func NewViewer(e *cli.Env) *cobra.Command {
	var v viewSettings
	cmd := &cobra.Command{
		Use: "view [RUN...]", Short: "Show runs in a browser", Long: viewLong,
		Example: `  rlm view
  rlm view outage
  rlm view traces/
  rlm view tr --export run.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withViewed(e, args, func(s viewer.Source) error {
				if v.export != "" {
					return exportView(cmd.Context(), s, v.export)
				}
				return serveView(cmd.Context(), e, s, v.listen)
			})
		},
	}
	cmd.Flags().StringVar(&v.listen, "listen", "127.0.0.1:0", "`address` of this machine; port 0 is a free one")
	cmd.Flags().StringVar(&v.export, "export", "", "new HTML `file` to write, in place of serving")
	return cmd
}

// withViewed calls use with a source of the given runs.
func withViewed(e *cli.Env, args []string, use func(viewer.Source) error) error {
	var paths, names []string
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil {
			paths = append(paths, arg)
		} else {
			names = append(names, arg)
		}
	}

	var sources []viewer.Source
	if len(paths) > 0 {
		files, err := viewer.FindTraces(paths...)
		if err != nil {
			return cli.Usage(err)
		}
		sources = append(sources, files)
	}

	if len(paths) > 0 && len(names) == 0 {
		return cli.AsUsage(use(viewer.Join(sources...)))
	}
	return wiring.WithStore(e, func(s store.Store) error {
		stored := &viewer.Stored{Store: s, Names: names}
		items, err := stored.List(context.Background())
		if err != nil {
			return err
		}
		if len(items) == 0 && len(paths) == 0 {
			_, _ = fmt.Fprintln(e.Stderr, "rlm: "+stored.WhenEmpty())
		}
		return use(viewer.Join(append(sources, stored)...))
	})
}

func exportView(ctx context.Context, s viewer.Source, name string) (err error) {
	items, err := s.List(ctx)
	if err == nil && len(items) != 1 {
		err = fmt.Errorf("--export writes one run, but there are %d: name one", len(items))
	}
	if err != nil {
		return err
	}
	run, err := s.Open(ctx, items[0].ID)
	if err != nil {
		return err
	}

	file, err := cli.CreateFile(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return viewer.Export(file, run)
}

// serveView serves a viewer until the command is interrupted.
func serveView(ctx context.Context, e *cli.Env, s viewer.Source, address string) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (ip == nil || !ip.IsLoopback()) {
		err = errors.New("give an address of this machine alone, such as 127.0.0.1:8080")
	}
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}

	token, own := viewer.Token(), listener.Addr().String()
	server := &http.Server{
		Handler:           viewer.Guard(token, own, viewer.New(s, e.Log)),
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    1 << 16,
	}
	_, _ = fmt.Fprintf(e.Stdout, "http://%s/%s/\n", own, token)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
