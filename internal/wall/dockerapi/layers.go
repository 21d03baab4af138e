package dockerapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
)

// Layer is the name of one part of a container's wall.
type Layer string

// The layers.
const (
	Seccomp    Layer = "seccomp"    // the list of system calls
	Network    Layer = "network"    // an empty network
	Privileges Layer = "privileges" // no capabilities, an unprivileged user
	Rootfs     Layer = "rootfs"     // a read-only root
	Names      Layer = "names"      // a separate host name
	Masks      Layer = "masks"      // hidden parts of /proc and /sys
	Tmpfs      Layer = "tmpfs"      // bounds of the writable folders
	Resources  Layer = "limits"     // control group and per-process limits
)

// Layers returns all layers.
func Layers() []Layer {
	return []Layer{Seccomp, Network, Privileges, Rootfs, Names, Masks, Tmpfs, Resources}
}

// leaveOut removes the layer from a container's configuration.
func (l Layer) leaveOut(config *container.Config, host *container.HostConfig) {
	switch l {
	case Seccomp:
		host.SecurityOpt = slices.DeleteFunc(host.SecurityOpt, func(o string) bool {
			return strings.HasPrefix(o, "seccomp=")
		})
		host.SecurityOpt = append(host.SecurityOpt, "seccomp=unconfined")

	case Network:
		config.NetworkDisabled, config.Hostname = false, ""
		host.NetworkMode, host.Sysctls = network.NetworkHost, nil

	case Privileges:
		config.User, host.CapDrop, host.CapAdd = "0:0", nil, []string{"SYS_ADMIN"}

	case Rootfs:
		host.ReadonlyRootfs = false

	case Names:
		// The process namespace stays separate, because the tier signals every process that is
		// visible to it.
		config.Hostname, host.UTSMode = "", "host"

	case Masks:
		host.MaskedPaths, host.ReadonlyPaths = []string{}, []string{}

	case Tmpfs:
		for place := range host.Tmpfs {
			user, group, _ := strings.Cut(config.User, ":")
			host.Tmpfs[place] = fmt.Sprintf("rw,nosuid,nodev,mode=0700,uid=%s,gid=%s", user, group)
		}

	case Resources:
		host.Memory, host.MemorySwap, host.MemoryReservation = 0, 0, 0
		host.PidsLimit = nil
		host.Ulimits = []*container.Ulimit{ulimit("nofile", 1<<14)}
	}
}
