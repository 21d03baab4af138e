//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"os"
)

// probeWorker is a worker that exits immediately.
const probeWorker = "jail-probe"

func init() { Register(probeWorker, func(*os.File) int { return 0 }) }

// Probe starts a jail that does nothing. It reports the class and layers available to this user,
// and how to get the missing layers.
func Probe(ctx context.Context) Report {
	r := Report{LandlockABI: landlockABI()}
	p, err := Start(ctx, Config{Worker: probeWorker})
	if err != nil {
		r.Advice = append(r.Advice, err.Error(), adviceFull)
		p, err = Start(ctx, Config{Worker: probeWorker, MinClass: Nested})
	}
	if err != nil {
		r.Advice = append(r.Advice, err.Error(), adviceNested)
		return r
	}

	a := p.Attestation()
	r.Class, r.Layers = a.Class, a.Layers
	r.UserNamespaces = a.Class == Full
	if p.cgroup != nil {
		r.CgroupVersion = p.cgroup.version
	} else {
		r.Advice = append(r.Advice, adviceCgroup)
	}
	if err := p.Kill(); err != nil {
		r.Advice = append(r.Advice, err.Error())
	}
	return r
}

// Advice on missing layers.
const (
	adviceFull = "for class full, allow this user to create user namespaces: " +
		"set user.max_user_namespaces above 0; " +
		"on Ubuntu 23.10 and later set kernel.apparmor_restrict_unprivileged_userns=0 " +
		"or run as root; inside a container, use tier docker, or run rlm outside of the container"
	adviceNested = "class nested needs seccomp and Landlock: use Linux 6.15 or later, or 6.12 " +
		"with its updates, with landlock in the kernel's list lsm="
	adviceCgroup = "to limit all processes together, run as root, or delegate a cgroup " +
		"with memory and pids to this user"
)
