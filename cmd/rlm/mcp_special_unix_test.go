//go:build unix

package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// makePipe creates a named pipe.
func makePipe(t *testing.T, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestSpecialFilesBelowARootAreRefused checks that special files are not opened, which could block
// indefinitely or have side effects. A folder as a context omits them.
func TestSpecialFilesBelowARootAreRefused(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makePipe(t, root, "pipe")
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(root, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, folder := range []string{"folder", "repository/.git"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, root, "folder/a.txt", "hay")
	makePipe(t, root, "folder/pipe")
	writeFile(t, root, "repository/a.txt", "hay")
	makePipe(t, root, "repository/.gitignore")
	if err := os.Symlink("../pipe", filepath.Join(root, "folder", "link")); err != nil {
		t.Fatal(err)
	}

	h := newHost(t, t.TempDir(), nil, "--root", root, "--root", filepath.Join(root, "pipe"))
	for path, want := range map[string]string{
		"pipe": "it is a pipe, not a regular file", "folder/pipe": "it is a pipe", "folder/link": "it is a pipe",
		"socket": "it is a socket", filepath.Join(root, "pipe"): "it is a pipe",
	} {
		_, failed := h.call("rlm_open", arguments{"contexts": []arguments{{"path": path}}})
		if !strings.Contains(failed, want) {
			t.Errorf("%s: got %q, want %q", path, failed, want)
		}
	}
	for _, path := range []string{"folder", "repository"} {
		opened := h.want("rlm_open", arguments{"contexts": []arguments{{"path": path}}})
		got := h.want("rlm_exec", arguments{"session": opened["session"], "source": "print(dict(context))"})
		if got["stdout"] != "{'a.txt': 'hay'}\n" {
			t.Errorf("%s: got %v", path, got)
		}
	}
}

// TestASignalEndsCallsOfHosts checks that the server ends while a call computes, or waits for a
// pipe that the user named.
func TestASignalEndsCallsOfHosts(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]*mcp.CallToolParams{
		"waits":    {Name: "rlm_open", Arguments: arguments{}},
		"computes": {Name: "rlm_exec", Arguments: arguments{"source": "print('begun', flush=True)\nwhile True: pass"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--timeout", "1h"}
			if name == "waits" {
				flags = append(flags, "--context", makePipe(t, t.TempDir(), "pipe"))
			}
			begun := make(chan bool, 1)
			options := &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
					begun <- true
				},
			}
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
			cmd := exec.Command("rlm", append([]string{"mcp"}, flags...)...)
			session, err := client.Connect(t.Context(), &mcp.CommandTransport{
				Command: cmd, TerminateDuration: time.Hour, // the server must end by itself
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			call.SetProgressToken("a")
			go func() {
				result, err := session.CallTool(context.Background(), call)
				if err == nil && result.IsError {
					err = errors.New("an error as a result")
				}
				ended <- err
			}()
			if name == "computes" {
				<-begun
			} else {
				time.Sleep(300 * time.Millisecond) // by then, the call most likely waits
			}

			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Error("the call has a result")
			}
			_ = session.Close() // waits for the process
		})
	}
}
