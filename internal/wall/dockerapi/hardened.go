package dockerapi

import (
	"cmp"
	"fmt"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
)

// This file defines the container of a Spec. docs/reference/docker.md gives the reason for each
// value. Fields that are not set here are intentionally zero.

// workDir is the working folder of a container.
const workDir = "/sandbox"

// hardenedConfig returns the configuration of the process in the container.
func hardenedConfig(s Spec) *container.Config {
	noTimeout := 0
	config := &container.Config{
		User:            fmt.Sprintf("%d:%d", s.user(), User),
		Env:             s.Env,
		WorkingDir:      workDir,
		Hostname:        "sandbox",
		NetworkDisabled: true,
		AttachStdin:     true,
		AttachStdout:    true,
		AttachStderr:    true,
		OpenStdin:       true,
		StdinOnce:       true,
		StopSignal:      "SIGKILL",
		StopTimeout:     &noTimeout,
		Healthcheck:     &container.HealthConfig{Test: []string{"NONE"}},
		Entrypoint:      s.Command,
		Image:           s.Image,
		Labels:          s.Labels,
	}
	if s.Root {
		config.User, config.WorkingDir = "0:0", "/"
	}
	return config
}

// hardenedHost returns the configuration of the wall around the container.
func hardenedHost(s Spec) *container.HostConfig {
	no, place := false, tmpfsOptions(s.user())
	host := &container.HostConfig{
		NetworkMode:    network.NetworkNone,
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + profileFor(s)},
		IpcMode:        container.IPCModeNone,
		CgroupnsMode:   container.CgroupnsModePrivate,
		OomScoreAdj:    900,
		Init:           &no,
		LogConfig:      container.LogConfig{Type: "none"},
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Tmpfs: map[string]string{
			"/tmp": place, workDir: place, "/dev/shm": place,
		},
		Sysctls: map[string]string{
			"net.ipv4.ip_unprivileged_port_start": "1024",
			"net.ipv4.ping_group_range":           "1 0",
		},
		Mounts:        bindMounts(s.Mounts),
		MaskedPaths:   maskedPaths,
		ReadonlyPaths: []string{}, // maskedPaths hides the daemon's default paths
		Resources:     limitedResources(s),
	}

	if s.AppArmor {
		host.SecurityOpt = append(host.SecurityOpt, "apparmor=docker-default")
	}
	if s.GVisor {
		host.Runtime = "runsc"
	}
	if s.Out {
		host.Tmpfs["/out"] = place
	}
	if s.Root {
		host.IpcMode = container.IPCModePrivate
		host.ReadonlyRootfs, host.Tmpfs = false, nil
		host.CPUShares = 0 // a user is waiting for it
	}
	return host
}

// limitedResources returns the resource limits of a container.
func limitedResources(s Spec) container.Resources {
	return container.Resources{
		CgroupParent:        groupName(s.Systemd),
		Memory:              s.Memory,
		MemorySwap:          s.Memory,
		MemoryReservation:   s.Memory / 2,
		NanoCPUs:            s.CPUs * 1e6,
		CPUShares:           128,
		PidsLimit:           &s.Processes,
		BlkioDeviceWriteBps: []*blkiodev.ThrottleDevice{},
		Ulimits: []*container.Ulimit{
			ulimit("nofile", OpenFiles), ulimit("fsize", FilesSize), ulimit("core", 0),
			ulimit("memlock", 0), ulimit("msgqueue", 0), ulimit("stack", 8<<20),
			ulimit("sigpending", PendingSignals),
		},
	}
}

// bindMounts converts mounts to the API's type.
func bindMounts(mounts []Mount) (list []mount.Mount) {
	for _, m := range mounts {
		list = append(list, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: true,
			BindOptions: &mount.BindOptions{
				Propagation: mount.PropagationRPrivate, NonRecursive: true,
			},
		})
	}
	return list
}

// noNetworks is the network configuration of every container: no networks.
var noNetworks = &network.NetworkingConfig{}

// tmpfsOptions returns the mount options of a writable folder. On older daemons, the folder's own
// mode would replace a mode of 1777.
func tmpfsOptions(user int) string {
	return fmt.Sprintf("rw,noexec,nosuid,nodev,size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d",
		FilesSize, FilesCount, user, User)
}

// user returns the number of the container's user.
func (s Spec) user() int { return cmp.Or(s.User, User) }

// ulimit returns a limit for one process.
func ulimit(name string, value int64) *container.Ulimit {
	return &container.Ulimit{Name: name, Soft: value, Hard: value}
}

// groupName returns the parent control group of all containers, so that the host can limit their
// sum.
func groupName(systemd bool) string {
	const group = "rlm"
	if systemd {
		return group + ".slice"
	}
	return "/" + group
}

// maskedPaths hides all information about the whole machine, except for the few files that programs
// commonly read. The list replaces the daemon's own list, so it repeats the daemon's entries.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/bootconfig", "/proc/buddyinfo", "/proc/bus",
	"/proc/cgroups", "/proc/cmdline", "/proc/config.gz", "/proc/consoles", "/proc/crypto",
	"/proc/devices", "/proc/diskstats", "/proc/dma", "/proc/driver", "/proc/dynamic_debug",
	"/proc/execdomains", "/proc/fb", "/proc/fs", "/proc/interrupts", "/proc/iomem",
	"/proc/ioports", "/proc/irq", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys",
	"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
	"/proc/latency_stats", "/proc/locks", "/proc/mdstat", "/proc/misc", "/proc/modules",
	"/proc/mtrr", "/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure", "/proc/sched_debug",
	"/proc/schedstat", "/proc/scsi", "/proc/slabinfo", "/proc/softirqs", "/proc/swaps",
	"/proc/sys", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/timer_stats", "/proc/tty",
	"/proc/vmallocinfo", "/proc/vmstat", "/proc/zoneinfo", "/sys",
	"/dev/pts/ptmx", // the machine has a limited number of terminals
}
