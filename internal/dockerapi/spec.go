package dockerapi

import (
	_ "embed" // the seccomp profile
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-units"
)

// seccompProfile is derived from moby's default profile by the package's test.
//
//go:embed seccomp.json
var seccompProfile string

// proxyProfile is the profile of containers with a proxy: it also allows sockets of
// IPv4, which is family 2.
var proxyProfile = sync.OnceValue(func() string {
	return edited(func(rules []any) []any { return append(rules, allowed("socket", comparison(0, 2))) })
})

// foldersProfile is the profile of containers that see folders of the host: whoever
// makes a socket there later would be reached by its name. Pairs that are connected
// from the start, and stay so, are allowed: streams, which is type 1.
var foldersProfile = sync.OnceValue(func() string {
	return edited(func(rules []any) []any {
		var kept []any
		for _, rule := range rules {
			fields, _ := rule.(map[string]any)
			names, _ := fields["names"].([]any)
			names = slices.DeleteFunc(names, func(name any) bool { return name == "socket" || name == "socketpair" })
			if fields["names"] = names; len(names) > 0 {
				kept = append(kept, fields)
			}
		}
		const kinds = 15 // the rest of the argument are flags
		stream := map[string]any{"index": 1, "value": kinds, "valueTwo": 1, "op": "SCMP_CMP_MASKED_EQ"}
		return append(kept, allowed("socketpair", comparison(0, 1), stream))
	})
})

// edited is the profile with its rules changed.
func edited(change func(rules []any) []any) string {
	var profile map[string]any
	if err := json.Unmarshal([]byte(seccompProfile), &profile); err != nil {
		panic(err) // it is embedded and tested
	}
	rules, _ := profile["syscalls"].([]any)
	profile["syscalls"] = change(rules)
	text, err := json.Marshal(profile)
	if err != nil {
		panic(err) // it was decoded
	}
	return string(text)
}

// allowed is the rule that allows a call with such arguments.
func allowed(call string, args ...any) map[string]any {
	return map[string]any{"names": []string{call}, "action": "SCMP_ACT_ALLOW", "args": args}
}

func comparison(index, value int) map[string]any {
	return map[string]any{"index": index, "value": value, "op": "SCMP_CMP_EQ"}
}

// profileFor is the seccomp profile of a container.
func profileFor(s Spec) string {
	switch {
	case s.Proxy:
		return proxyProfile()
	case s.Folders:
		return foldersProfile()
	}
	return seccompProfile
}

// User is who runs in a container: nobody's number on the host, and no name.
const User = 65532

// Spec is what containers differ in. Everything else is the same for all.
type Spec struct {
	// Name is the container's, and nobody else's: it can be removed by it even if
	// nobody knows whether it was made. Empty lets the daemon choose.
	Name string
	// Image is an image's ID, "sha256:…".
	Image string
	// Command is the program, by its absolute path, and its arguments.
	Command []string
	// Env is the whole environment.
	Env []string
	// Labels tell containers apart, see List.
	Labels map[string]string
	// Memory is what all processes may have together, in bytes, the files in memory
	// included. There is no swap.
	Memory int64
	// CPUs is how many processors may be used, in thousandths.
	CPUs int64
	// Processes bounds processes and threads together.
	Processes int64
	// Proxy lets processes make IPv4 sockets, in a network in which there is only
	// what the container makes itself.
	Proxy bool
	// Mounts are files of the host, read-only.
	Mounts []Mount
	// Folders says that there are folders of the caller's among Mounts. Without Proxy,
	// processes then cannot make sockets that have, or connect to, a name.
	Folders bool
	// Out adds the folder /out, in memory as /tmp is.
	Out bool
	// GVisor chooses the runtime runsc.
	GVisor bool
	// Systemd is Facts.Systemd: it decides how a control group is named.
	Systemd bool
	// AppArmor is Facts.AppArmor: the daemon's own profile is then asked for.
	AppArmor bool
	// Root runs as root with a file tree that can be written: to make images from,
	// never for code that is not ours.
	Root bool
	// Off leaves layers of the wall out: for tests that prove what each is good for.
	Off []Layer
}

// Mount shows a file or folder of the host in a container, read-only.
type Mount struct{ Source, Target string }

// Sizes of the places that can be written, all in memory.
const (
	// FilesSize is how much each of /tmp, /sandbox and /dev/shm holds, in bytes, and
	// how large one file can be.
	FilesSize = 64 << 20
	// FilesCount is how many files each holds.
	FilesCount = 4096
	// OpenFiles is how many files one process may have open.
	OpenFiles = 256
)

// Group is the control group of all containers together, for a limit on the whole.
const Group = "rlm"

// hardened is the container of a Spec: docs/docker.md gives the reason for each
// value. Fields that are not here have their zero value on purpose.
func hardened(s Spec) (*container.Config, *container.HostConfig, *network.NetworkingConfig) {
	noTimeout := 0
	config := &container.Config{
		User: fmt.Sprintf("%d:%d", User, User), Env: s.Env, WorkingDir: "/sandbox", Hostname: "sandbox",
		NetworkDisabled: true,
		AttachStdin:     true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		StopSignal: "SIGKILL", StopTimeout: &noTimeout,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Entrypoint:  s.Command, Image: s.Image, Labels: s.Labels,
	}
	no := false
	host := &container.HostConfig{
		NetworkMode: network.NetworkNone, ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		SecurityOpt:   []string{"no-new-privileges:true", "seccomp=" + profileFor(s)},
		IpcMode:       container.IPCModeNone,
		CgroupnsMode:  container.CgroupnsModePrivate,
		OomScoreAdj:   900,
		Init:          &no,
		LogConfig:     container.LogConfig{Type: "none"},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Tmpfs: map[string]string{
			"/tmp": tmpfs, "/sandbox": tmpfs, "/dev/shm": tmpfs,
		},
		Sysctls: map[string]string{
			"net.ipv4.ip_unprivileged_port_start": "1024",
			"net.ipv4.ping_group_range":           "1 0",
		},
		MaskedPaths: maskedPaths, ReadonlyPaths: readonlyPaths,
		Resources: container.Resources{
			CgroupParent: group(s.Systemd),
			Memory:       s.Memory, MemorySwap: s.Memory, MemoryReservation: s.Memory / 2,
			NanoCPUs: s.CPUs * 1e6, CPUShares: 128, PidsLimit: &s.Processes,
			BlkioDeviceWriteBps: []*blkiodev.ThrottleDevice{},
			Ulimits: []*units.Ulimit{
				limit("nofile", OpenFiles), limit("fsize", FilesSize), limit("core", 0), limit("memlock", 0), limit("msgqueue", 0),
				limit("stack", 8<<20),
			},
		},
	}
	if s.AppArmor {
		host.SecurityOpt = append(host.SecurityOpt, "apparmor=docker-default")
	}
	if s.GVisor {
		host.Runtime = "runsc"
	}
	for _, m := range s.Mounts {
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true},
		})
	}
	if s.Out {
		host.Tmpfs["/out"] = tmpfs
	}
	if s.Root {
		host.IpcMode = container.IPCModePrivate
		config.User, config.WorkingDir = "0:0", "/"
		host.ReadonlyRootfs, host.Tmpfs = false, nil
		host.CPUShares = 0 // somebody waits for it
	}
	for _, layer := range s.Off {
		layer.leave(config, host)
	}
	return config, host, &network.NetworkingConfig{}
}

// A mode of 1777 would be overwritten by the folder's own on older daemons.
var tmpfs = fmt.Sprintf("rw,noexec,nosuid,nodev,size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d", FilesSize, FilesCount, User, User)

func limit(name string, value int64) *units.Ulimit {
	return &units.Ulimit{Name: name, Soft: value, Hard: value}
}

func group(systemd bool) string {
	if systemd {
		return Group + ".slice"
	}
	return "/" + Group
}

// The lists replace the daemon's own, so its entries are here too.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/kmsg",
		"/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
		"/proc/sysrq-trigger", "/proc/timer_list", "/proc/timer_stats", "/sys",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"}
)

// removeIn bounds the removal of a container that could not be started.
const removeIn = 10 * time.Second
