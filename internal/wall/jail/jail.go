// Package jail runs one hostile program in one hardened process tree.
//
// A jail goes through these processes:
//
//	launcher ──Start──► init ──► guest ──► the program or the worker
//
// They are:
//
//   - The launcher is the process that calls Start.
//   - The init is process 1 of the jail, which executes this same binary again. It builds the file
//     tree, reaps processes, and ends the whole jail when it ends.
//   - The guest is a child of the init. It locks itself down and proves that to the
//     launcher. Only then does it become what Config names: a program of the file tree
//     (Path), or a Go function of this binary (Worker).
//
// The other words of this package:
//
//   - A Process is the launcher's handle of a running jail.
//   - A layer is one independent obstacle: namespaces, mounts, Landlock, and so on.
//   - An Attestation is the guest's own measurement of its layers, before the first hostile
//     instruction. Start compares it with the request.
//   - A Class states which layers are in force: Full has all of them, and Nested has no namespaces.
//     Most containers allow only Nested.
//   - A Profile lists the system calls that the guest may make.
//
// Every binary that imports this package is its own helper. If the process was started as a helper,
// an init function of the package takes over and never returns.
//
// Only Linux has jails. On other systems, Start returns an error.
package jail

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Class is the strength of a jail.
type Class string

// The classes, strongest first.
const (
	Full   Class = "full"   // every layer
	Nested Class = "nested" // no namespaces: Landlock, seccomp and limits only
)

// Profile names the system calls that the guest may make.
type Profile string

// The profiles. In all of them, the only sockets that a guest can create are pairs of connected
// streams.
const (
	// Compute is for workers that only compute and talk to the launcher, without new files,
	// programs or processes.
	Compute Profile = "compute"
	// Engine is for workers that also run machine code which they map or generate, and keep files
	// in memory. They cannot open files by name either, except for the page table, which package
	// pagemap then keeps open.
	Engine Profile = "engine"
	// Programs is for guests that use files, threads and processes.
	Programs Profile = "programs"
)

// Layers is a set of layers.
type Layers uint

// The layers.
const (
	Namespaces Layers = 1 << iota // user, process, IPC, host name, cgroup
	Mounts                        // a separate file tree
	Network                       // an empty network
	Privileges                    // no capabilities, and no way to get any
	Landlock                      // the kernel's rules for files, network and signals
	Seccomp                       // a list of allowed system calls
	Rlimits                       // limits of one process
	Cgroup                        // limits of the whole tree
	allLayers  = iota
)

var layerNames = [allLayers]string{
	"namespaces", "mounts", "network", "privileges", "landlock", "seccomp", "rlimits", "cgroup",
}

// String returns the names of the layers, separated by commas.
func (l Layers) String() string {
	var names []string
	for i, name := range layerNames {
		if l&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Bind makes a file or folder of the host visible in the jail's file tree.
type Bind struct {
	// Source is an absolute path on the host. Only the launcher must be able to reach it, but the
	// guest's user must be able to read the files.
	Source string
	// Target is an absolute path in the jail, or empty for Source. In class Nested, it must equal
	// Source.
	Target string
	// Writable allows the guest's user to write, as far as the modes of the files permit. Programs
	// in a writable bind cannot be executed.
	Writable bool
}

// Limits bound a jail. Zero means the default, never "unlimited".
type Limits struct {
	Memory       int64 // bytes, whole tree; 512 MiB
	AddressSpace int64 // bytes of virtual memory, each process; see Start
	Processes    int   // processes and threads of the guest; 128
	OpenFiles    int   // descriptors of one process; 256
	FileSize     int64 // bytes, each file; 64 MiB
	CPUSeconds   int64 // each process; 3600
	TmpBytes     int64 // bytes of each of /tmp, /sandbox and /dev/shm; 64 MiB
	TmpInodes    int64 // files in each of them; 4096
}

// Config describes the process to jail and its rights. Set exactly one of Path and Worker.
type Config struct {
	// Path is a program in the jail's file tree. Args are its arguments, starting with its name.
	// Profile must be Programs.
	Path string
	Args []string
	// Env is the complete environment, as "name=value". A program inherits it; a worker reads it
	// through os.Environ.
	Env []string
	// Dir is the working folder inside the jail; empty means /sandbox.
	Dir string
	// Worker is the name of a function registered with Register.
	Worker string
	// Binds are added to the file tree, which always has /tmp, /sandbox, /proc and a /dev with
	// null, zero, urandom and shm.
	Binds []Bind
	// Scratch lists additional folders below / that the guest may write to. Like /tmp, each is a
	// separate file system, bounded and in memory. It implies class Full.
	Scratch []string
	// Proxy adds a listener on 127.0.0.1:ProxyPort of the guest's separate network, which the
	// launcher serves. The guest cannot connect to anything else. See Process.Proxy. Profile must
	// be Programs; Proxy implies class Full.
	Proxy bool
	// Limits bound the jail.
	Limits Limits
	// Profile defaults to Compute.
	Profile Profile
	// MinClass is the weakest acceptable class; it defaults to Full.
	MinClass Class
	// AllowSampled accepts a jail of profile Programs or Engine whose memory no cgroup counts. The
	// init then samples the memory; see watchMemory for the memory that it misses. Profile Compute
	// does not need this permission.
	AllowSampled bool
	// Off lists layers to omit. It is for tests that prove the effect of a layer; Start refuses it
	// outside a test binary.
	Off Layers
}

// ProxyPort is the port of the proxy in the guest.
const ProxyPort = 3128

// Exit is how the guest ended.
type Exit struct {
	Code   int            // -1 if a signal ended it
	Signal syscall.Signal // the signal that ended it, or 0
	OOM    bool           // a process of the tree was killed for lack of memory
	Killed bool           // by Kill or the end of the context, before it ended by itself
}

// String describes the exit in a few words.
func (e Exit) String() string {
	switch {
	case e.OOM:
		return "out of memory"
	case e.Killed:
		return "killed"
	case e.Signal != 0:
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Usage holds the resources that the jail has used.
type Usage struct {
	PeakMemory int64 // bytes, whole tree; 0 if no cgroup counts them
	// CPUNanos is the processor time of the whole tree. Without a cgroup, it covers only the
	// processes that have ended.
	CPUNanos int64
}

// LayerState is the state of one layer as measured.
type LayerState struct {
	Name      string `json:"name"`      // one of the names of Layers
	On        bool   `json:"on"`        // the layer is in force
	Mechanism string `json:"mechanism"` // how, in a few words; empty if not On
	Why       string `json:"why"`       // why not, if not On
}

// Attestation describes a jail as measured from inside, before the guest's first
// instruction.
type Attestation struct {
	Class       Class        `json:"class"`
	Layers      []LayerState `json:"layers"`
	LandlockABI int          `json:"landlock_abi"`
	UID         int          `json:"uid"`      // inside
	HostUID     int          `json:"host_uid"` // outside
	Mounts      []string     `json:"mounts"`   // mount points inside, nil in class Nested
	PID         int          `json:"pid"`      // the guest's PID, inside
}

// holds reports whether all of these layers are in force.
func (a Attestation) holds(layers Layers) bool {
	for i, name := range layerNames {
		if layers&(1<<i) == 0 {
			continue
		}
		holds := func(s LayerState) bool { return s.Name == name && s.On }
		if !slices.ContainsFunc(a.Layers, holds) {
			return false
		}
	}
	return true
}

// Report describes the jails that this machine offers to this user.
type Report struct {
	Class          Class        `json:"class"` // the best class, or empty if there is none
	Layers         []LayerState `json:"layers"`
	LandlockABI    int          `json:"landlock_abi"`    // 0 without Landlock
	CgroupVersion  int          `json:"cgroup_version"`  // 1 or 2; 0 if it can set no limits
	UserNamespaces bool         `json:"user_namespaces"` // can be created
	Advice         []string     `json:"advice"`          // how to get missing layers
}
