package docker

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// whole returns the attestation of a container whose wall is complete.
func whole() attestation {
	place := []string{"rw", "nosuid", "nodev", "noexec", "relatime"}
	a := attestation{
		Status: map[string]string{
			"Uid": "70000\t70000\t70000\t70000", "Gid": "65532\t65532\t65532\t65532",
			"Groups": "65532 ", "NoNewPrivs": "1", "Seccomp": "2",
		},
		PID: 1,
		Mounts: map[string][]string{
			"/": {"ro"}, "/tmp": place, "/sandbox": place, "/dev/shm": place,
			"/context/0": {"ro"}, "/data": {"ro"}, "/proc": {"rw"},
		},
		Files: map[string][]uint64{},
		Limits: map[string]int64{
			"NOFILE": 256, "FSIZE": dockerapi.FilesSize, "CORE": 0, "MEMLOCK": 0,
			"MSGQUEUE": 0, "STACK": 8 << 20, "SIGPENDING": dockerapi.PendingSignals,
		},
		Interfaces: []string{"lo"},
		Refused:    map[string]int{},
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		a.Status[set] = "0000000000000000"
	}
	for _, p := range []string{"/tmp", "/sandbox", "/dev/shm"} {
		a.Files[p] = []uint64{dockerapi.FilesSize, dockerapi.FilesCount, 0}
	}
	for _, deed := range refusedActions {
		a.Refused[deed] = 1
	}
	return a
}

func TestEachHoleInTheWallIsSeen(t *testing.T) {
	if holes := whole().holes(wanted{user: 70000}); len(holes) > 0 {
		t.Fatalf("a wall that stands has holes: %s", holes)
	}
	for want, spoil := range map[string]func(*attestation){
		"Uid is":         func(a *attestation) { a.Status["Uid"] = "0\t0\t0\t0" },
		"Gid is":         func(a *attestation) { a.Status["Gid"] = "" },
		"has the groups": func(a *attestation) { a.Status["Groups"] = "0 65532" },
		"capabilities CapBnd": func(a *attestation) {
			a.Status["CapBnd"] = "0000000000000001"
		},
		"capabilities CapEff":           func(a *attestation) { delete(a.Status, "CapEff") },
		"new privileges":                func(a *attestation) { a.Status["NoNewPrivs"] = "0" },
		"the seccomp filter is missing": func(a *attestation) { a.Status["Seccomp"] = "0" },
		"the process has number 7":      func(a *attestation) { a.PID = 7 },
		"root file system can be":       func(a *attestation) { a.Mounts["/"] = []string{"rw"} },
		"/sys shows 12":                 func(a *attestation) { a.Sys = 12 },
		"/tmp is not mounted noexec": func(a *attestation) {
			a.Mounts["/tmp"] = []string{
				"rw",
				"nosuid", "nodev",
			}
		},
		"/sandbox holds":            func(a *attestation) { a.Files["/sandbox"][0]++ },
		"/dev/shm holds":            func(a *attestation) { delete(a.Files, "/dev/shm") },
		"/context/0 can be written": func(a *attestation) { a.Mounts["/context/0"] = []string{"rw"} },
		"/data can be written":      func(a *attestation) { a.Mounts["/data"] = []string{"rw"} },
		"/out holds":                func(a *attestation) { a.Mounts["/out"] = a.Mounts["/tmp"] },
		"the limit NOFILE":          func(a *attestation) { a.Limits["NOFILE"] = 1024 },
		"the limit CORE":            func(a *attestation) { delete(a.Limits, "CORE") },
		"the limit SIGPENDING is":   func(a *attestation) { a.Limits["SIGPENDING"]++ },
		"does not refuse: datagram": func(a *attestation) { a.Refused["datagram"] = 0 },
		"the limit STACK is -1":     func(a *attestation) { a.Limits["STACK"] = -1 },
		`network interface "eth0"`: func(a *attestation) {
			a.Interfaces = append(a.Interfaces,
				"eth0")
		},
		"does not refuse: inet":        func(a *attestation) { a.Refused["inet"] = 0 },
		"does not refuse: userns":      func(a *attestation) { delete(a.Refused, "userns") },
		"does not refuse: root file":   func(a *attestation) { a.Refused["root file"] = 0 },
		"does not refuse: mknod":       func(a *attestation) { a.Refused["mknod"] = 0 },
		"the kernel does not refuse: ": func(a *attestation) { a.Refused = nil },
	} {
		t.Run(want, func(t *testing.T) {
			a := whole()
			spoil(&a)
			if holes := a.holes(wanted{user: 70000}); !slices.ContainsFunc(
				holes, func(hole string) bool { return strings.Contains(hole, want) },
			) {
				t.Errorf("%q is not among %q", want, holes)
			}
		})
	}
	a := whole()
	a.Inodes = map[string][]uint64{"/data": {1, 2}}
	want := wanted{user: 70000, inodes: map[string][]uint64{"/data": {1, 2}}, folders: true}
	if holes := a.holes(want); len(holes) != 1 || holes[0] != "the kernel does not refuse: unix" {
		t.Errorf("sockets beside a folder: %q", holes)
	}
	a.Refused["unix"], a.Inodes["/data"][1] = 1, 3
	if holes := a.holes(want); len(holes) != 1 ||
		!strings.Contains(holes[0], "at /data was replaced") {
		t.Errorf("another folder: %q", holes)
	}
	a = whole()
	a.Status["Seccomp"], a.Refused["inet"] = "0", 0
	if holes := a.holes(wanted{user: 70000, ownKernel: true}); len(holes) > 0 {
		t.Errorf("a kernel of its own needs no filter: %s", holes)
	}
}

// FuzzAttestation checks that any output of a container is parsed or rejected, and that the search
// for holes never panics.
func FuzzAttestation(f *testing.F) {
	good, err := json.Marshal(whole())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"status":null,"files":{"/tmp":[1]}}`))
	f.Add([]byte(`{"unknown":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := readAttestation(line)
		if err == nil && len(line) > maxAttestation {
			t.Error("it was too long")
		}
		// Must not panic.
		_ = a.holes(wanted{
			ownKernel: len(line)%2 == 0,
			folders:   len(line)%3 == 0,
			inodes:    map[string][]uint64{"/data": {1, 2}},
		})
	})
}

func TestLabelsTellWhoseOwnerHasEnded(t *testing.T) {
	now := time.Now()
	own := (&tier{}).labels()
	for _, row := range []struct {
		name  string
		owner string
		due   string
		want  bool
	}{
		{"this process", own[labelOwner], own[labelDeadline], false},
		{"this process, after its deadline", own[labelOwner], "1", false},
		{"a process that has gone", machine() + "/999999999/5", own[labelDeadline], true},
		{"another process with a number used again", machine() + "/1/5", own[labelDeadline], true},
		{"another machine", "other/1/5", own[labelDeadline], false},
		{"another machine, after the deadline", "other/1/5", "1", true},
		{"nobody knows", "", own[labelDeadline], false},
		{"rubbish", machine() + "/x/y/z", "x", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if startOf(1) == "" && strings.Contains(row.name, "process") {
				return // there is no /proc
			}
			labels := map[string]string{labelOwner: row.owner, labelDeadline: row.due}
			if got := abandoned(labels, now); got != row.want {
				t.Errorf("%s: %v", row.name, got)
			}
		})
	}
}
