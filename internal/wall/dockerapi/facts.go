package dockerapi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
)

// minAPI is the oldest API version that has everything that this package needs. It is the version
// of Docker 20.10, the first release with a private cgroup namespace.
const minAPI = "1.41"

// Facts are the properties that a daemon reports of itself.
type Facts struct {
	// Version is the daemon's version, and Runc is the version of the default runtime.
	Version, Runc string
	// CgroupVersion is "1" or "2".
	CgroupVersion string
	// Kernel is the release of the kernel that containers run on.
	Kernel string
	// Systemd reports whether systemd creates the control groups.
	Systemd bool
	// AppArmor reports whether the daemon can enforce AppArmor profiles.
	AppArmor bool
	// GVisor reports whether the runtime runsc, which has its own kernel, is available.
	GVisor bool
	// Mapped reports whether the daemon maps the users of containers to a small range.
	Mapped bool
}

// The range of user numbers for containers. systemd and adduser do not assign numbers from this
// range.
const (
	firstUser  = 0x70000000
	usersCount = 1 << 24
)

// NewUser returns a user number that most likely no other container has. The kernel counts pipes,
// signals and other resources per user, so containers with the same user could exhaust each other's
// resources.
func (f Facts) NewUser() int {
	if f.Mapped {
		return User
	}
	return firstUser + rand.IntN(usersCount) //nolint:gosec // not a secret
}

// Check requests the daemon's facts. It fails without a daemon, or if the daemon cannot enforce the
// settings that every container needs.
func (c *Client) Check(ctx context.Context) (Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	info, err := c.api.Info(ctx)
	if err != nil {
		return Facts{}, c.explain("ask the Docker daemon for its features", err)
	}
	_, gvisor := info.Runtimes["runsc"]
	facts := Facts{
		Version:       info.ServerVersion,
		Runc:          info.RuncCommit.ID,
		CgroupVersion: info.CgroupVersion,
		Kernel:        info.KernelVersion,
		Systemd:       info.CgroupDriver == "systemd",
		AppArmor:      hasSecurity(info, "apparmor"),
		GVisor:        gvisor,
		Mapped:        hasSecurity(info, "rootless") || hasSecurity(info, "userns"),
	}
	return facts, checkAbilities(info, c.api.ClientVersion())
}

// hasSecurity reports whether a daemon offers a kind of security.
func hasSecurity(info system.Info, kind string) bool {
	for _, option := range info.SecurityOptions {
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "name="), ",")
		if name == kind {
			return true
		}
	}
	return false
}

// checkAbilities reports the first requirement that a daemon does not meet.
func checkAbilities(info system.Info, api string) error {
	limits := info.MemoryLimit && info.CPUCfsQuota && info.PidsLimit

	var lacks []string
	for _, need := range []struct {
		met  bool
		what string
	}{
		{
			versions.GreaterThanOrEqualTo(api, minAPI),
			fmt.Sprintf("version %s of the API (the daemon has %s: update Docker to 20.10 or later)",
				minAPI, api),
		},
		{info.OSType == "linux", "Linux containers"},
		{hasSecurity(info, "seccomp"), "seccomp"},
		{
			limits,
			"limits on memory, processors and processes (a rootless daemon needs cgroup v2 with " +
				"these controllers delegated)",
		},
		{
			info.CgroupVersion != "1" || info.SwapLimit,
			"limits on swap (boot with swapaccount=1)",
		},
	} {
		if !need.met {
			lacks = append(lacks, need.what)
		}
	}

	if len(lacks) > 0 {
		return fmt.Errorf("the Docker daemon %s cannot enforce all required settings: it lacks %s",
			info.ServerVersion, strings.Join(lacks, "; "))
	}
	return nil
}
