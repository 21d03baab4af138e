// Package jail runs one hostile program in one hardened process tree.
//
// The words of this package:
//
//   - The launcher is the process that calls Start.
//   - The init is process 1 of the jail. It is this very binary, executed again:
//     it builds the file tree, reaps, and ends everything when it ends.
//   - The guest is the child of the init. It locks itself down, proves that to
//     the launcher, and only then becomes what Config names: a program of the
//     file tree (Path), or a Go function of this binary (Worker).
//   - A layer is one independent obstacle: namespaces, mounts, Landlock, …
//   - The attestation is what the guest measured about its own layers, before
//     the first hostile instruction. Start compares it with what was asked.
//   - A class says which layers are there: Full has them all, Nested has no
//     namespaces, which is what remains inside most containers.
//
// Every binary that imports this package is its own helper: an init function
// notices that the process was started as one and never returns.
//
// Only Linux has jails. Elsewhere Start returns ErrUnsupported.
package jail

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// ErrUnsupported is wrapped by the error of Start on systems without jails.
var ErrUnsupported = errors.New("jails need Linux on amd64 or arm64")

// ErrEnded is wrapped by the error of an order that came too late: the jail had
// ended, or ended by the order before it could confirm it.
var ErrEnded = errors.New("the jail has ended")

// Class is how strong a jail is.
type Class string

// The classes, the strongest first.
const (
	Full   Class = "full"   // every layer
	Nested Class = "nested" // no namespaces: Landlock, seccomp and limits only
)

// Profile names the system calls that the guest may make.
type Profile string

// The profiles. Neither can create a socket other than a pair of streams.
const (
	// Interp is for a registered worker: no new file, program or process.
	Interp Profile = "interp"
	// CPython is for programs: files, threads and processes of its own.
	CPython Profile = "cpython"
)

// Layers is a set of layers.
type Layers uint

// The layers.
const (
	Namespaces Layers = 1 << iota // user, process, IPC, host name, cgroup
	Mounts                        // an own file tree
	Network                       // an empty network
	Privileges                    // no capabilities, none to be had
	Landlock                      // file, network and signal rules of the kernel
	Seccomp                       // a list of allowed system calls
	Rlimits                       // limits of a process
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

// Bind puts a file or folder of the host into the jail's file tree.
type Bind struct {
	// Source is an absolute path of the host. It may lie where only the
	// launcher can reach it; the guest's user must be able to read the files.
	Source string
	// Target is an absolute path in the jail, Source if empty. In class Nested
	// it must equal Source.
	Target string
	// Writable lets the guest's user write, as far as the modes of the files
	// allow. Programs cannot be executed from a writable bind.
	Writable bool
}

// Limits bound a jail. Zero means the default, never "unlimited".
type Limits struct {
	Memory       int64 // bytes of the whole tree; 512 MiB
	AddressSpace int64 // bytes of virtual memory of one process; see Start
	Processes    int   // processes and threads of the guest; 64
	OpenFiles    int   // descriptors of one process; 256
	FileSize     int64 // bytes of one file; 64 MiB
	CPUSeconds   int64 // of one process; 3600
	TmpBytes     int64 // bytes of /tmp, as much of /sandbox and of /dev/shm; 64 MiB
	TmpInodes    int64 // files in /tmp, as many in /sandbox and in /dev/shm; 4096
}

// Config says what the jailed process is and what it may do. Exactly one of
// Path and Worker is set.
type Config struct {
	// Path is a program inside the jail's file tree; Args are its arguments,
	// the first one its name. Profile must be CPython.
	Path string
	Args []string
	// Env is the whole environment, as "name=value". It is given to Path and,
	// by os.Environ, to a worker.
	Env []string
	// Dir is the working folder inside the jail, /sandbox if empty.
	Dir string
	// Worker is the name of a function given to Register.
	Worker string
	// Binds are what the file tree holds besides /tmp, /sandbox, /proc and a
	// /dev with null, zero, urandom and shm.
	Binds []Bind
	// Proxy gives the guest one thing to connect to: a listener on
	// 127.0.0.1:ProxyPort of its own network, which is empty otherwise. The
	// launcher serves it, see Process.Proxy. Profile must be CPython, and the
	// class is Full.
	Proxy bool
	// Limits bound the jail.
	Limits Limits
	// Profile is Interp if empty.
	Profile Profile
	// MinClass is the weakest class to accept, Full if empty.
	MinClass Class
	// Off are layers to leave out. It is for tests that prove what a layer is
	// good for: Start refuses it outside of a test binary.
	Off Layers
}

// ProxyPort is where a guest finds its proxy.
const ProxyPort = 3128

// Exit is how the guest ended.
type Exit struct {
	Code   int            // exit code, -1 if a signal ended it
	Signal syscall.Signal // the signal that ended it, 0 if none
	OOM    bool           // the kernel, or the jail, ended something in the tree for its memory
	Killed bool           // Kill was called, or the context ended, before it ended by itself
}

// String says it in a few words.
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

// Usage is what the jail has used.
type Usage struct {
	PeakMemory int64 // bytes of the whole tree; 0 if no cgroup counts them
	CPUNanos   int64 // processor time of the whole tree; of its dead processes only without a cgroup
}

// LayerState is one layer as it was found.
type LayerState struct {
	Name      string `json:"name"`      // one of the names of Layers
	On        bool   `json:"on"`        // it holds
	Mechanism string `json:"mechanism"` // how, in a few words; empty if not On
	Why       string `json:"why"`       // why it is not On
}

// Attestation is what a jail is like, measured from inside before the guest's
// first instruction.
type Attestation struct {
	Class       Class        `json:"class"`
	Layers      []LayerState `json:"layers"`
	LandlockABI int          `json:"landlock_abi"`
	UID         int          `json:"uid"`      // inside
	HostUID     int          `json:"host_uid"` // outside
	Mounts      []string     `json:"mounts"`   // mount points inside, nil in class Nested
	PID         int          `json:"pid"`      // of the guest, inside
}

// On reports whether all of the layers hold.
func (a Attestation) On(layers Layers) bool {
	for i, name := range layerNames {
		if layers&(1<<i) == 0 {
			continue
		}
		if !slices.ContainsFunc(a.Layers, func(s LayerState) bool { return s.Name == name && s.On }) {
			return false
		}
	}
	return true
}

// Report says what jails can be had here.
type Report struct {
	Class          Class        `json:"class"` // the best to be had, empty if none
	Layers         []LayerState `json:"layers"`
	LandlockABI    int          `json:"landlock_abi"`    // 0 if there is no Landlock
	CgroupVersion  int          `json:"cgroup_version"`  // 1 or 2; 0 if no limits can be set by it
	UserNamespaces bool         `json:"user_namespaces"` // they can be created
	Advice         []string     `json:"advice"`          // what to do about layers that are not on
}
