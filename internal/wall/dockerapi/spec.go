package dockerapi

// User is the number of the group in a container, and of the user in an image. No user of the
// host should have it.
const User = 65532

// Spec is what containers differ in. Everything else is the same for all.
type Spec struct {
	// Name must be unique. The container can be removed by it even if the daemon did not
	// say whether it was made. Empty lets the daemon choose.
	Name string
	// Image is an image's ID, "sha256:…".
	Image string
	// User is the number of the user, see Facts.NewUser. 0 means the constant User.
	User int
	// Command is the program, by its absolute path, and its arguments.
	Command []string
	// Env is the whole environment.
	Env []string
	// Labels identify containers, see List.
	Labels map[string]string
	// Memory bounds all processes together, in bytes, including the files in memory.
	// There is no swap.
	Memory int64
	// CPUs is how many processors may be used, in thousandths.
	CPUs int64
	// Processes bounds processes and threads together.
	Processes int64
	// Proxy lets processes make IPv4 sockets, in a network that holds only what the
	// container makes itself.
	Proxy bool
	// Mounts are files of the host, read-only.
	Mounts []Mount
	// Folders says that folders of the caller are among Mounts. Unless Proxy is set,
	// processes then cannot make sockets that have a name, or connect to one.
	Folders bool
	// Out adds the folder /out, in memory as /tmp is.
	Out bool
	// GVisor chooses the runtime runsc.
	GVisor bool
	// Systemd is Facts.Systemd: it decides how a control group is named.
	Systemd bool
	// AppArmor is Facts.AppArmor: the daemon's own profile is then asked for.
	AppArmor bool
	// Root runs as root with a file tree that can be written. It is for making images,
	// and only for code of this project.
	Root bool
	// Off leaves layers of the wall out, for tests that prove what each is good for.
	Off []Layer
}

// Mount shows a file or folder of the host in a container, read-only.
type Mount struct{ Source, Target string }

// Sizes of the places that can be written, all in memory.
const (
	// FilesSize is how much each of /tmp, /sandbox and /dev/shm holds, in bytes, and how
	// large one file can be.
	FilesSize = 64 << 20
	// FilesCount is how many files each holds.
	FilesCount = 4096
	// OpenFiles is how many files one process may have open.
	OpenFiles = 256
	// PendingSignals is how many signals may be queued for the user of a container.
	PendingSignals = 256
)
