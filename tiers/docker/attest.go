package docker

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
)

// attestation describes a container from the point of view of its first process. It is written
// inside the container, although before any code of a model runs, so it is decoded strictly.
type attestation struct {
	Status     map[string]string   `json:"status"`
	PID        int                 `json:"pid"`
	Mounts     map[string][]string `json:"mounts"`
	Files      map[string][]uint64 `json:"files"`
	Inodes     map[string][]uint64 `json:"inodes"`
	Limits     map[string]int64    `json:"limits"`
	Interfaces []string            `json:"interfaces"`
	Sys        int                 `json:"sys"`
	Refused    map[string]int      `json:"refused"`
}

// maxAttestation bounds an attestation, in bytes.
const maxAttestation = 64 << 10

// readAttestation decodes the first line that a container reports.
func readAttestation(line []byte) (attestation, error) {
	var a attestation
	if len(line) > maxAttestation {
		return a, fmt.Errorf(
			"cannot read a container's attestation: it has %d bytes, more than %d",
			len(line), maxAttestation,
		)
	}

	d := json.NewDecoder(strings.NewReader(string(line)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || d.More() {
		return a, fmt.Errorf("cannot read a container's attestation: %.200q", line)
	}
	return a, nil
}

// wanted holds the properties that differ between the walls of containers.
type wanted struct {
	// user is the numeric user ID.
	user int
	// ownKernel means that the container has a separate kernel, without the host's seccomp filter
	// and inode numbers.
	ownKernel bool
	// proxy permits IPv4 sockets. folders, without proxy, forbids Unix sockets, because a
	// mounted folder could contain one.
	proxy, folders bool
	// inodes are the expected device and inode numbers at each mount point.
	inodes map[string][]uint64
}

// holes lists the gaps of a wall; it is empty if the wall is complete.
func (a attestation) holes(w wanted) []string {
	var list []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}

	group := fmt.Sprint(dockerapi.User)
	for _, id := range [][2]string{{"Uid", fmt.Sprint(w.user)}, {"Gid", group}} {
		field, number := id[0], id[1]
		ids := strings.Fields(a.Status[field])
		want(
			len(ids) == 4 && !slices.ContainsFunc(ids, func(id string) bool { return id != number }),
			"%s is %q, not %s", field, a.Status[field], number,
		)
	}

	groups := strings.Fields(a.Status["Groups"])
	want(
		!slices.ContainsFunc(groups, func(id string) bool { return id != group }),
		"the process has the groups %q", groups,
	)
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		value := strings.TrimSpace(a.Status[set])
		want(
			value != "" && strings.Trim(value, "0") == "",
			"the capabilities %s are %q, not 0", set, value,
		)
	}

	want(strings.TrimSpace(a.Status["NoNewPrivs"]) == "1", "a program can get new privileges")
	want(w.ownKernel || strings.TrimSpace(a.Status["Seccomp"]) == "2", "the seccomp filter is missing")
	want(a.PID == 1, "the process has number %d in a shared process namespace", a.PID)
	a.filesHoles(want)
	for name, most := range map[string]int64{
		"NOFILE": dockerapi.OpenFiles,
		"FSIZE":  dockerapi.FilesSize, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "STACK": 8 << 20,
		"SIGPENDING": dockerapi.PendingSignals,
	} {
		value, ok := a.Limits[name]
		want(
			ok && value >= 0 && value <= most,
			"the limit %s is %d, more than %d", name, value, most,
		)
	}

	for _, name := range a.Interfaces {
		want(name == "lo", "there is a network interface %q", name)
	}
	a.refusedHoles(w, want)
	for place, inode := range w.inodes {
		want(
			w.ownKernel || slices.Equal(a.Inodes[place], inode),
			"the file or folder at %s was replaced after it was checked",
			place,
		)
	}

	return list
}

// filesHoles adds the gaps of mounts and files.
func (a attestation) filesHoles(want func(bool, string, ...any)) {
	want(slices.Contains(a.Mounts["/"], "ro"), "the root file system can be written")
	want(a.Sys == 0, "/sys shows %d entries", a.Sys)
	places := []string{"/tmp", "/sandbox", "/dev/shm"}
	if a.Mounts[tiers.OutFolder] != nil {
		places = append(places, tiers.OutFolder)
	}

	for _, place := range places {
		for _, option := range []string{"noexec", "nosuid", "nodev"} {
			want(slices.Contains(a.Mounts[place], option), "%s is not mounted %s", place, option)
		}
		size := a.Files[place]
		want(
			len(size) == 3 && size[0] <= dockerapi.FilesSize && size[1] <= dockerapi.FilesCount,
			"%s holds %v, more than %d bytes and %d files",
			place, size, dockerapi.FilesSize, dockerapi.FilesCount,
		)
	}

	for place, options := range a.Mounts {
		ours := slices.Contains(places, place) || slices.Contains(kernels, place)
		want(
			ours || slices.Contains(options, "ro") || strings.HasPrefix(place, "/etc/"),
			"%s can be written", place,
		)
	}
}

// kernels are the kernel's own mounts, which cannot hold files.
var kernels = []string{"/dev", "/proc", "/sys"}

// refusedActions are actions that the first process attempts; the kernel must refuse each.
var refusedActions = []string{
	"inet", "inet6", "netlink", "packet", "alg", "vsock", "datagram", "userns", "root file", "sysctl",
	"mknod",
}

// refusedHoles adds the actions that the kernel did not refuse.
func (a attestation) refusedHoles(w wanted, want func(bool, string, ...any)) {
	actions := refusedActions
	if w.folders && !w.proxy {
		actions = append([]string{"unix"}, actions...)
	}
	for _, action := range actions {
		errno, tried := a.Refused[action]
		if w.proxy && action == "inet" {
			continue
		}
		needed := !w.ownKernel || action == "root file" || action == "mknod"
		want(
			!needed || tried && errno > 0 && errno < math.MaxInt16,
			"the kernel does not refuse: %s", action,
		)
	}
}
