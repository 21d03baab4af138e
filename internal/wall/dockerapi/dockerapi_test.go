package dockerapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryContainerIsHardened(t *testing.T) {
	spec := Spec{
		Image: "sha256:1", Command: []string{"/bin/x"}, Memory: 100, CPUs: 500, Processes: 64,
		Mounts: []Mount{{"/a", "/context/0"}},
	}
	config, host := hardenedConfig(spec), hardenedHost(spec)
	tmp := "noexec,nosuid,nodev,size=67108864,nr_inodes=4096,mode=0700"
	for what, holds := range map[string]bool{
		"a numeric user": config.User == "65532:65532",
		"no network":     config.NetworkDisabled && host.NetworkMode.IsNone(),
		"no terminal":    !config.Tty,
		"no health check": len(config.Healthcheck.Test) == 1 &&
			config.Healthcheck.Test[0] == "NONE",
		"stop by SIGKILL": config.StopSignal == "SIGKILL" && *config.StopTimeout == 0,
		"no volumes":      config.Volumes == nil,
		"no ports": config.ExposedPorts == nil && host.PortBindings == nil &&
			!host.PublishAllPorts,
		"not privileged":           !host.Privileged,
		"a root that is read-only": host.ReadonlyRootfs,
		"no capabilities": len(host.CapDrop) == 1 && host.CapDrop[0] == "ALL" &&
			len(host.CapAdd) == 0,
		"no new privileges": host.SecurityOpt[0] == "no-new-privileges:true",
		"seccomp":           strings.HasPrefix(host.SecurityOpt[1], "seccomp={"),
		"no namespace of the host": host.PidMode == "" && host.UsernsMode == "" &&
			host.UTSMode == "" && host.IpcMode == container.IPCModeNone,
		"separate control groups": host.CgroupnsMode == container.CgroupnsModePrivate &&
			host.CgroupParent == "/rlm",
		"no swap":              host.Memory == 100 && host.MemorySwap == 100,
		"processors":           host.NanoCPUs == 5e8,
		"processes":            *host.PidsLimit == 64,
		"dies before the host": host.OomScoreAdj == 900 && host.OomKillDisable == nil,
		"no devices": len(host.Devices)+len(host.DeviceRequests)+
			len(host.DeviceCgroupRules) == 0,
		"no log on disk":   host.LogConfig.Type == "none",
		"is not restarted": host.RestartPolicy.IsNone(),
		"is removed by us": !host.AutoRemove,
		"no links, no names": len(host.Links)+len(host.VolumesFrom)+len(host.ExtraHosts)+
			len(host.DNS)+len(host.GroupAdd)+len(host.Binds) == 0,
		"places to write": len(host.Tmpfs) == 3 && strings.Contains(host.Tmpfs["/tmp"], tmp),
		"all of /sys is masked": contains(host.MaskedPaths, "/sys") &&
			contains(host.MaskedPaths, "/proc/kcore"),
		"what the machine does is masked": contains(host.MaskedPaths, "/proc/sys") &&
			contains(host.MaskedPaths, "/proc/vmstat"),
		"mounts are read-only": host.Mounts[0].ReadOnly &&
			host.Mounts[0].BindOptions.NonRecursive &&
			host.Mounts[0].BindOptions.Propagation == "rprivate",
		"the daemon's own init": !*host.Init,
		"the usual runtime":     host.Runtime == "",
		"no other profile":      len(host.SecurityOpt) == 2,
	} {
		if !holds {
			t.Errorf("not so: %s", what)
		}
	}

	host = hardenedHost(Spec{GVisor: true, Systemd: true, AppArmor: true})
	if host.Runtime != "runsc" || host.CgroupParent != "rlm.slice" ||
		!contains(host.SecurityOpt, "apparmor=docker-default") {
		t.Errorf("%q %q %q", host.Runtime, host.CgroupParent, host.SecurityOpt)
	}
}

// rule is a rule of a seccomp profile, with the fields that matter for sockets.
type rule struct {
	Names []string
	Args  []struct {
		Index           uint
		Value, ValueTwo uint64
		Op              string
	}
}

// socketRules returns the rules of a container's profile about a call.
func socketRules(t *testing.T, s Spec, call string) []rule {
	t.Helper()
	var profile struct {
		DefaultAction string
		Syscalls      []rule
	}
	if err := json.Unmarshal([]byte(profileFor(s)), &profile); err != nil {
		t.Fatal(err)
	}
	if profile.DefaultAction != "SCMP_ACT_ERRNO" || len(profile.Syscalls) < 3 {
		t.Fatalf("it refuses nothing: %s, %d rules", profile.DefaultAction, len(profile.Syscalls))
	}
	var found []rule
	for _, r := range profile.Syscalls {
		if contains(r.Names, call) {
			found = append(found, r)
		}
	}

	return found
}

func TestSocketsAreAllowedAsFarAsTheyLeadNowhere(t *testing.T) {
	const local, ipv4 = "[{0 1 0 SCMP_CMP_EQ} {1 15 1 SCMP_CMP_MASKED_EQ}]",
		"[{0 2 0 SCMP_CMP_EQ} {1 15 1 SCMP_CMP_MASKED_EQ} {2 %d 0 SCMP_CMP_EQ}]"
	for name, c := range map[string]struct {
		spec Spec
		call string
		want []string // the arguments of its rules
	}{
		"a socket": {Spec{}, "socket", []string{local}},
		"a pair":   {Spec{}, "socketpair", []string{local}},
		"a socket, with a proxy": {
			Spec{Proxy: true}, "socket", []string{local, fmt.Sprintf(ipv4, 0), fmt.Sprintf(ipv4, 6)},
		},
		"a pair, with folders":    {Spec{Folders: true}, "socketpair", []string{local}},
		"a socket, with folders":  {Spec{Folders: true}, "socket", nil},
		"both, with both of them": {Spec{Proxy: true, Folders: true}, "socketpair", []string{local}},
		"a socket, with both of them": {
			Spec{Proxy: true, Folders: true},
			"socket",
			[]string{local, fmt.Sprintf(ipv4, 0), fmt.Sprintf(ipv4, 6)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range socketRules(t, c.spec, c.call) {
				got = append(got, fmt.Sprint(r.Args))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		})
	}
	folders := Spec{Folders: true}

	if got := socketRules(
		t,
		folders,
		"connect",
	); len(
		got,
	) != 1 { // a connected stream cannot change its peer
		t.Errorf("with folders: %+v", got)
	}
}

func contains(list []string, what string) bool {
	for _, s := range list {
		if s == what {
			return true
		}
	}
	return false
}

// answers starts a daemon with prepared answers.
func answers(t *testing.T, answer map[string]string) (*Client, *[]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	server := &http.Server{
		Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // a test's
				where := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v1.41")
				asked = append(asked, where)
				w.Header().Set("Api-Version", "1.41")
				w.Header().Set("Content-Type", "application/json")
				body, ok := answer[where]
				if !ok && !strings.HasSuffix(where, "/_ping") {
					w.WriteHeader(http.StatusNotFound)
					body = `{"message":"nothing there"}`
				}

				_, _ = io.WriteString(w, body)
			},
		),
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until it is closed
	}()
	c, err := New("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), server.Close(); <-done })

	return c, &asked
}

const able = `{"ServerVersion":"20.10.24","OSType":"linux","MemoryLimit":true,"SwapLimit":true,
"CpuCfsQuota":true,"PidsLimit":true,"CgroupVersion":"1","CgroupDriver":"systemd",
"SecurityOptions":["name=seccomp,profile=default","name=apparmor","name=rootless"],
"Runtimes":{"runc":{},"runsc":{}}}`

func TestADaemonThatCannotEnforceIsRefused(t *testing.T) {
	c, _ := answers(t, map[string]string{"GET /info": able})
	f, err := c.Check(t.Context())
	want := Facts{
		Version: "20.10.24", CgroupVersion: "1", Systemd: true, AppArmor: true, GVisor: true,
		Mapped: true,
	}
	if err != nil || f != want {
		t.Errorf("%+v %v", f, err)
	}

	for from, row := range map[string]struct{ to, want string }{
		`"name=seccomp,profile=default",`: {"", "it lacks seccomp"},
		`"SwapLimit":true`:                {`"SwapLimit":false`, "swapaccount=1"},
		`"PidsLimit":true`: {
			`"PidsLimit":false`, "limits on memory, processors and processes",
		},
		`"OSType":"linux"`: {`"OSType":"windows"`, "Linux containers"},
	} {
		t.Run(from, func(t *testing.T) {
			c, _ := answers(t, map[string]string{"GET /info": strings.Replace(able, from, row.to, 1)})
			if _, err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v", from, err)
			}
		})
	}
}

func TestAWarningIsAFailure(t *testing.T) {
	c, asked := answers(t, map[string]string{
		"POST /containers/create": `{"Id":"abc","Warnings":["the kernel does not support this"]}`,
		"DELETE /containers/abc":  "",
	})
	_, err := c.Start(t.Context(), Spec{Image: "sha256:1"}, func([]byte) {})
	if err == nil ||
		!strings.Contains(
			err.Error(),
			"does not enforce all requested settings: the kernel does not support this",
		) {
		t.Errorf("%v", err)
	}
	if last := (*asked)[len(*asked)-1]; last != "DELETE /containers/abc" {
		t.Errorf("the container was not removed: %s", *asked)
	}
}

func TestMissingObjectsHaveNamedErrors(t *testing.T) {
	c, _ := answers(t, nil)
	if _, err := c.Image(t.Context(), "rlm/none:1"); !errors.Is(err, ErrNoImage) {
		t.Errorf("%v", err)
	}
	if _, err := c.Start(
		t.Context(),
		Spec{Image: "sha256:1"},
		func([]byte) {},
	); !errors.Is(
		err,
		ErrNoImage,
	) {
		t.Errorf("%v", err)
	}
	gone := &Container{ID: "abc", client: c}
	if err := gone.Signal(t.Context(), "SIGINT"); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	if _, err := gone.State(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
	if err := c.Remove(t.Context(), "abc"); err != nil {
		t.Errorf("%v", err)
	}
}

func TestOnlyASocketOfThisMachineIsUsed(t *testing.T) {
	for _, host := range []string{"tcp://10.0.0.1:2375", "ssh://host", "http://x", "nonsense"} {
		t.Run(host, func(t *testing.T) {
			if _, err := New(host); !errors.Is(err, errors.ErrUnsupported) ||
				!strings.Contains(err.Error(), "must be behind a socket of this machine") {
				t.Errorf("%s: %v", host, err)
			}
		})
	}

	c, err := New("unix:///no/such.sock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Check(
		context.Background(),
	); err == nil ||
		!strings.Contains(err.Error(), "start the daemon, or name another with DOCKER_HOST") {
		t.Errorf("%v", err)
	}
}

func piece(stream byte, text string) []byte {
	head := append(
		[]byte{stream, 0, 0, 0},
		binary.BigEndian.AppendUint32(nil, uint32(len(text)))...)
	return append(head, text...)
}

func TestPiecesAreJoined(t *testing.T) {
	data := bytes.Join([][]byte{piece(1, "one "), piece(1, ""), piece(1, "two")}, nil)
	got, err := io.ReadAll(&pieces{in: bufio.NewReader(bytes.NewReader(data)), which: 1})
	if err != nil || string(got) != "one two" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := io.ReadAll(
		&pieces{in: bufio.NewReader(bytes.NewReader(piece(2, "x"))), which: 1},
	); !errors.Is(
		err,
		errStream,
	) {
		t.Errorf("another stream: %v", err)
	}
	if _, err := io.ReadAll(
		&pieces{in: bufio.NewReader(bytes.NewReader(data[:3])), which: 1},
	); !errors.Is(
		err,
		io.ErrUnexpectedEOF,
	) {
		t.Errorf("half a header: %v", err)
	}
}

// FuzzPieces reads garbage. The reader must end, and return no more than it received.
func FuzzPieces(f *testing.F) {
	f.Add(piece(1, "hello"))
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _ := io.ReadAll(
			&pieces{in: bufio.NewReader(bytes.NewReader(data)), which: 1},
		) // any error is fine
		if len(got) > len(data) {
			t.Errorf("%d bytes out of %d", len(got), len(data))
		}
	})
}

// TestEachContainerHasItsUser checks that the user number is in the configuration and on every
// writable folder, and that a daemon that maps users gets a number that it can map.
func TestEachContainerHasItsUser(t *testing.T) {
	a, b := Facts{}.NewUser(), Facts{}.NewUser()
	if a == b || a < firstUser || a >= firstUser+usersCount {
		t.Errorf("the users are %d and %d", a, b)
	}
	if mapped := (Facts{Mapped: true}).NewUser(); mapped != User {
		t.Errorf("a daemon that maps users gets %d", mapped)
	}

	spec := Spec{User: a}
	if got, want := hardenedConfig(spec).User, fmt.Sprintf("%d:%d", a, User); got != want {
		t.Errorf("the container runs as %s, not %s", got, want)
	}
	for place, options := range hardenedHost(spec).Tmpfs {
		if !strings.Contains(options, fmt.Sprintf("uid=%d,", a)) {
			t.Errorf("%s belongs to another user: %s", place, options)
		}
	}
}
