package docker

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/dockerapi"
	"github.com/rlmhq/rlm/tiers"
)

// attestation is what the first process of a container sees around it. It comes
// before any code of a model, but from within, so it is decoded strictly.
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

// maxAttestation bounds what a container may say of itself.
const maxAttestation = 64 << 10

// readAttestation decodes the first line that a container reports.
func readAttestation(line []byte) (attestation, error) {
	var a attestation
	if len(line) > maxAttestation {
		return a, fmt.Errorf(
			"cannot understand what a container says of its wall: it has %d bytes", len(line),
		)
	}

	d := json.NewDecoder(strings.NewReader(string(line)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || d.More() {
		return a, fmt.Errorf("cannot understand what a container says of its wall: %.200q", line)
	}
	return a, nil
}

// wanted is in what the walls of containers differ.
type wanted struct {
	// ownKernel: it has no filter of the host's in it, and numbers files by itself.
	ownKernel bool
	// proxy: there are sockets of IPv4. folders: there are none with a name.
	proxy, folders bool
	// inodes are what must be mounted where: device and number of a file or folder.
	inodes map[string][]uint64
}

// holes lists what is not as it was asked for; empty is a whole wall.
func (a attestation) holes(w wanted) []string {
	var list []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}

	user := fmt.Sprint(dockerapi.User)
	for _, who := range []string{"Uid", "Gid"} {
		ids := strings.Fields(a.Status[who])
		want(
			len(ids) == 4 && !slices.ContainsFunc(ids, func(id string) bool { return id != user }),
			"%s is %q, not %s", who, a.Status[who], user,
		)
	}

	groups := strings.Fields(a.Status["Groups"])
	want(
		!slices.ContainsFunc(groups, func(id string) bool { return id != user }),
		"it has the groups %q", groups,
	)
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		value := strings.TrimSpace(a.Status[set])
		want(
			value != "" && strings.Trim(value, "0") == "", "the capabilities %s are %q, not 0", set,
			value,
		)
	}

	want(strings.TrimSpace(a.Status["NoNewPrivs"]) == "1", "a program can get new privileges")
	want(w.ownKernel || strings.TrimSpace(a.Status["Seccomp"]) == "2", "there is no seccomp filter")
	want(a.PID == 1, "it is process %d of a namespace that is not its own", a.PID)
	a.filesHoles(want)
	for name, most := range map[string]int64{
		"NOFILE": dockerapi.OpenFiles,
		"FSIZE":  dockerapi.FilesSize, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "STACK": 8 << 20,
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
			"at %s is not what was looked at before, but something that was put in its place",
			place,
		)
	}

	return list
}

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
			"%s holds %v, more than %d bytes and %d files", place, size, dockerapi.FilesSize,
			dockerapi.FilesCount,
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

// kernels are mounts that are no place for files.
var kernels = []string{"/dev", "/proc", "/sys"}

// refusedDeeds are what the first process tries, and must be refused.
var refusedDeeds = []string{
	"inet", "inet6", "netlink", "packet", "alg", "vsock", "userns", "root file", "sysctl", "mknod",
}

func (a attestation) refusedHoles(w wanted, want func(bool, string, ...any)) {
	deeds := refusedDeeds
	if w.folders && !w.proxy {
		deeds = append([]string{"unix"}, deeds...)
	}
	for _, deed := range deeds {
		errno, tried := a.Refused[deed]
		if w.proxy && deed == "inet" {
			continue
		}
		needed := !w.ownKernel || deed == "root file" || deed == "mknod"
		want(
			!needed || tried && errno > 0 && errno < math.MaxInt16,
			"the kernel does not refuse: %s", deed,
		)
	}
}
