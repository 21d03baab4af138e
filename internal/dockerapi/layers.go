package dockerapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-units"
)

// Layer is a part of the wall of a container, by its name.
type Layer string

// The layers.
const (
	Seccomp    Layer = "seccomp"    // the list of system calls
	Network    Layer = "network"    // a network of its own, with nothing in it
	Privileges Layer = "privileges" // no capabilities, an unprivileged user
	Rootfs     Layer = "rootfs"     // a root that cannot be written
	Names      Layer = "names"      // a host name of its own
	Masks      Layer = "masks"      // what is hidden of /proc and /sys
	Tmpfs      Layer = "tmpfs"      // bounds of the places that can be written
	Resources  Layer = "limits"     // control group and limits of a process
)

// Layers are all of them.
func Layers() []Layer {
	return []Layer{Seccomp, Network, Privileges, Rootfs, Names, Masks, Tmpfs, Resources}
}

// leave takes the layer out of a container.
func (l Layer) leave(config *container.Config, host *container.HostConfig) {
	switch l {
	case Seccomp:
		host.SecurityOpt = slices.DeleteFunc(host.SecurityOpt, func(o string) bool { return strings.HasPrefix(o, "seccomp=") })
		host.SecurityOpt = append(host.SecurityOpt, "seccomp=unconfined")
	case Network:
		config.NetworkDisabled, config.Hostname, host.NetworkMode, host.Sysctls = false, "", network.NetworkHost, nil
	case Privileges:
		config.User, host.CapDrop, host.CapAdd = "0:0", nil, []string{"SYS_ADMIN"}
	case Rootfs:
		host.ReadonlyRootfs = false
	case Names: // the numbers of processes stay its own: the tier signals all that it sees
		config.Hostname, host.UTSMode = "", "host"
	case Masks:
		host.MaskedPaths, host.ReadonlyPaths = []string{}, []string{}
	case Tmpfs:
		for place := range host.Tmpfs {
			host.Tmpfs[place] = fmt.Sprintf("rw,nosuid,nodev,mode=0700,uid=%d,gid=%d", User, User)
		}
	case Resources:
		host.Memory, host.MemorySwap, host.MemoryReservation, host.PidsLimit = 0, 0, 0, nil
		host.Ulimits = []*units.Ulimit{limit("nofile", 1<<14)}
	}
}
