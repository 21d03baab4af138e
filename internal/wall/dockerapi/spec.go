package dockerapi

// User is the group number of every container, and the user number of images. No user of the host
// should have it.
const User = 65532

// Spec holds the settings that differ between containers. All other settings are the same.
type Spec struct {
	// Name must be unique. It identifies the container for removal even if the daemon never
	// confirmed its creation. If Name is empty, the daemon chooses one.
	Name string
	// Image is an image's ID, "sha256:…".
	Image string
	// User is the user's number; see Facts.NewUser. 0 means the constant User.
	User int
	// Command is the absolute path of the program, followed by its arguments.
	Command []string
	// Env is the complete environment.
	Env []string
	// Labels identify containers; see List.
	Labels map[string]string
	// Memory bounds all processes together, in bytes, including files in memory. There is no swap.
	Memory int64
	// CPUs bounds the use of processors, in thousandths of a processor.
	CPUs int64
	// Processes bounds processes and threads together.
	Processes int64
	// Proxy lets processes create IPv4 sockets, in a network that contains only what the container
	// itself creates.
	Proxy bool
	// Mounts are files of the host, read-only.
	Mounts []Mount
	// Folders reports whether Mounts include folders of the caller. Unless Proxy is set, processes
	// then cannot create sockets with a name, or connect to such sockets.
	Folders bool
	// Out adds the folder /out, in memory like /tmp.
	Out bool
	// GVisor selects the runtime runsc.
	GVisor bool
	// Systemd is Facts.Systemd, which determines how control groups are named.
	Systemd bool
	// AppArmor is Facts.AppArmor. If it is set, the container uses the daemon's own profile.
	AppArmor bool
	// Root runs the container as root with a writable file tree. It is for building images, and
	// only for code of this project.
	Root bool
	// Off lists layers of the wall to omit, for tests that prove the effect of each layer.
	Off []Layer
}

// Mount makes a file or folder of the host visible in a container, read-only.
type Mount struct{ Source, Target string }

// Sizes of the writable folders, all of which are in memory.
const (
	// FilesSize bounds each of /tmp, /sandbox and /dev/shm, and each file, in bytes.
	FilesSize = 64 << 20
	// FilesCount bounds the number of files in each of these folders.
	FilesCount = 4096
	// OpenFiles bounds the open files of one process.
	OpenFiles = 256
	// PendingSignals bounds the signals queued for the user of a container.
	PendingSignals = 256
)
