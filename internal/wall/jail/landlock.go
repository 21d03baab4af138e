//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// The rights that a rule can grant. Reading includes listing folders.
const (
	accessRead  = ll.AccessFSReadFile | ll.AccessFSReadDir
	accessRun   = accessRead | ll.AccessFSExecute
	accessWrite = accessRead | ll.AccessFSWriteFile | ll.AccessFSTruncate |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSRefer |
		ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSym | ll.AccessFSMakeFifo
	accessFile = ll.AccessFSReadFile | ll.AccessFSWriteFile |
		ll.AccessFSExecute | ll.AccessFSTruncate
)

// landlockConfigs holds, for each ABI from 1 on, everything that the ABI can forbid. An ABI beyond
// the last one here is treated as the last one.
//
// They are never relaxed with BestEffort, which leaves a process without any rule if the kernel
// lacks one right. If a kernel and the library disagree, the start must fail.
var landlockConfigs = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
	landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

const (
	// nestedABI is the first ABI that keeps a guest from signalling processes outside. With
	// namespaces, the process namespace does that.
	nestedABI = 6
	// syncABI is the first ABI that restricts all threads together. With earlier ones, each thread
	// has a separate domain.
	syncABI = 8
	// signalErratum marks kernels whose signal scope does not apply among the threads of one
	// process.
	signalErratum = 1 << 1
)

// landlockABI returns the Landlock ABI available here, or 0 if there is none.
func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}

	// Without the fix, scopes would keep a Go program from signalling its own threads, which the
	// runtime does constantly. The library then also refuses scopes.
	errata, err := ll.LandlockGetErrata()
	if fixed := err == nil && errata&signalErratum != 0; !fixed {
		abi = min(abi, nestedABI-1)
	}
	return min(abi, len(landlockConfigs))
}

// restrictFiles puts all threads under Landlock rules.
func restrictFiles(p *plan) error {
	abi := landlockABI()
	if err := checkLandlockABI(p, abi); err != nil {
		return err
	}

	config := landlockConfigs[abi-1]
	if abi < syncABI && p.Worker != "" && p.Profile == Programs && p.wants(Namespaces) {
		// With the scope, a thread could not signal the children of another thread. The process
		// namespace already keeps signals inside.
		config.Scoped &^= ll.ScopeSignal
	}

	if err := config.Restrict(landlockRules(p, config)...); err != nil {
		return fmt.Errorf("cannot enforce the Landlock rules: %w", err)
	}
	return nil
}

// checkLandlockABI returns an error if an ABI is not sufficient for the plan.
func checkLandlockABI(p *plan, abi int) error {
	if abi == 0 {
		return errors.New("the kernel has no Landlock: " +
			"use Linux 5.13 or later with landlock in CONFIG_LSM or lsm=")
	}
	if p.Class == Nested && abi < nestedABI && p.HostUID == p.UID {
		return fmt.Errorf("without a process namespace, Landlock ABI %d is required, "+
			"but the kernel has ABI %d: use Linux 6.15 or later, or 6.12 with its updates",
			nestedABI, abi)
	}
	return nil
}

// landlockRules returns the rules that allow paths to a guest. A rule contains only rights that
// config restricts. Only profile Programs allows paths.
func landlockRules(p *plan, config landlock.Config) []landlock.Rule {
	if p.Profile != Programs {
		return nil
	}

	var rules []landlock.Rule
	allow := func(path string, access landlock.AccessFSSet) {
		rules = append(rules, landlock.PathAccess(access&config.HandledAccessFS, path))
	}

	for _, t := range p.Trees {
		access := landlock.AccessFSSet(accessRun)
		if t.Write {
			access = accessWrite
		}
		if !t.Folder {
			access &= accessFile
		}
		allow(t.Target, access)
	}

	if p.wants(Mounts) {
		for _, dir := range p.scratch() {
			allow(dir, accessWrite)
		}
		allow("/proc", accessRead)
	}

	if p.Proxy && config.HandledAccessNet != 0 {
		rules = append(rules, landlock.ConnectTCP(ProxyPort))
	}
	return rules
}
