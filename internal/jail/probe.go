//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"os"
)

// probeWorker is a worker that ends at once.
const probeWorker = "jail-probe"

func init() { Register(probeWorker, func(*os.File) int { return 0 }) }

// Probe starts a jail that does nothing and reports which class and layers can
// be had here by this user, and what to do about those that cannot.
func Probe(ctx context.Context) Report {
	r := Report{LandlockABI: landlockABI()}
	p, err := start(ctx, Config{Worker: probeWorker}, "")
	if err != nil {
		r.Advice = append(r.Advice, err.Error(), adviceFull)
		p, err = start(ctx, Config{Worker: probeWorker, MinClass: Nested}, "")
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

// What to do about layers that are missing.
const (
	adviceFull = "for class full, allow this user to make user namespaces: set user.max_user_namespaces above 0; " +
		"on Ubuntu 23.10 and later set kernel.apparmor_restrict_unprivileged_userns=0 or run as root; " +
		"in a container use the docker tier or run outside of it"
	adviceNested = "for class nested, Linux 6.12 or later with landlock in the list of lsm= is needed, and seccomp"
	adviceCgroup = "for limits of the whole tree, run as root or have a cgroup with memory and pids delegated"
)
