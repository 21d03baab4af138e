// Package dockerapi is the small part of Docker's API that this project uses: one
// hardened kind of container, its standard streams, and images.
//
// It is the only package that knows Docker's client. A container is what [Spec]
// says and otherwise always the same: see hardened. What the daemon accepts with
// a warning counts as refused, because it would not be enforced.
//
// Every call has a deadline: a daemon that hangs is an error, not a wait.
package dockerapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// MinAPI is the oldest version of the API that has all that is needed: Docker
// 20.10, the first with a private cgroup namespace.
const MinAPI = "1.41"

// patience bounds a call that should take milliseconds, longPatience one that
// starts or ends processes on a machine under load.
const (
	patience     = 5 * time.Second
	longPatience = 30 * time.Second
)

// Client speaks to one daemon. It is safe for concurrent use.
type Client struct {
	api *client.Client
}

// New returns a client for the daemon at host, a URL as in DOCKER_HOST; empty
// means the system's own socket. It does not connect.
func New(host string) (*Client, error) {
	if host == "" {
		host = client.DefaultDockerHost
	}
	scheme, _, _ := strings.Cut(host, "://")
	if scheme != "unix" && scheme != "npipe" {
		return nil, fmt.Errorf("cannot use the Docker daemon at %s: only one behind a socket of this machine is used, "+
			"because snippets and contexts would cross the network; forward its socket, for example by ssh -L, and name that as unix:///path", host)
	}
	api, err := client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("cannot use the Docker daemon at %s: %w", host, err)
	}
	return &Client{api: api}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() error { return c.api.Close() }

// Facts are what a daemon says of itself.
type Facts struct {
	// Version is the daemon's, API the negotiated version of the API.
	Version, API string
	// Runc is the version of the default runtime, as the daemon knows it.
	Runc string
	// CgroupVersion is "1" or "2".
	CgroupVersion string
	// Systemd says that systemd makes the control groups.
	Systemd bool
	// Rootless says that the daemon is no root of the host.
	Rootless bool
	// UserNamespace says that root in a container is another user outside.
	UserNamespace bool
	// Seccomp, AppArmor and SELinux say which the daemon can enforce.
	Seccomp, AppArmor, SELinux bool
	// GVisor says that the runtime runsc is there: a kernel of its own.
	GVisor bool
	// SwapLimit and Limits say that memory, processors and processes can be limited.
	SwapLimit, Limits bool
	// Linux says that containers are Linux's.
	Linux bool
	// Arch is the architecture, as the kernel names it.
	Arch string
	// Kernel is the release of the kernel that containers run on.
	Kernel string
}

// Check asks the daemon what it is and can. It fails if there is none, or one that
// cannot enforce what every container here must have.
func (c *Client) Check(ctx context.Context) (Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	info, err := c.api.Info(ctx)
	if err != nil {
		return Facts{}, c.explain("ask the Docker daemon what it can", err)
	}
	f := Facts{
		Version: info.ServerVersion, API: c.api.ClientVersion(), Runc: info.RuncCommit.ID, CgroupVersion: info.CgroupVersion,
		Systemd: info.CgroupDriver == "systemd", SwapLimit: info.SwapLimit,
		Limits: info.MemoryLimit && info.CPUCfsQuota && info.PidsLimit, Linux: info.OSType == "linux", Arch: info.Architecture,
		Kernel: info.KernelVersion,
	}
	_, f.GVisor = info.Runtimes["runsc"]
	for _, option := range info.SecurityOptions {
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "name="), ",")
		f.Seccomp = f.Seccomp || name == "seccomp"
		f.AppArmor = f.AppArmor || name == "apparmor"
		f.SELinux = f.SELinux || name == "selinux"
		f.Rootless = f.Rootless || name == "rootless"
		f.UserNamespace = f.UserNamespace || name == "userns"
	}
	return f, f.enough()
}

// enough reports what a daemon lacks to be used.
func (f Facts) enough() error {
	var lacks []string
	for _, need := range []struct {
		is   bool
		what string
	}{
		{versions.GreaterThanOrEqualTo(f.API, MinAPI), fmt.Sprintf("version %s of the API (it has %s: update Docker to 20.10 or later)", MinAPI, f.API)},
		{f.Linux, "Linux containers"},
		{f.Seccomp, "seccomp"},
		{f.Limits, "limits on memory, processors and processes (a rootless daemon needs cgroup v2 with these controllers delegated)"},
		{f.CgroupVersion != "1" || f.SwapLimit, "limits on swap (boot with swapaccount=1)"},
	} {
		if !need.is {
			lacks = append(lacks, need.what)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("the Docker daemon %s cannot enforce all that is needed, it lacks %s", f.Version, strings.Join(lacks, "; "))
	}
	return nil
}

// explain adds what to do about a daemon that is not there or does not answer.
func (c *Client) explain(what string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission) || client.IsErrConnectionFailed(err) && strings.Contains(err.Error(), "permission denied"):
		return fmt.Errorf("cannot %s at %s: this user may not use it: join the group that owns the socket (usually sudo usermod -aG docker $USER, "+
			"then log in again), or run a rootless daemon and name it by DOCKER_HOST: %w", what, c.api.DaemonHost(), err)
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("cannot %s at %s: start it, or name another by DOCKER_HOST: %w", what, c.api.DaemonHost(), err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot %s: it does not answer: %w", what, err)
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}

// sorted are the keys of a set of labels, for messages.
func sorted(labels map[string]string) []string {
	var list []string
	for key, value := range labels {
		list = append(list, key+"="+value)
	}
	slices.Sort(list)
	return list
}
