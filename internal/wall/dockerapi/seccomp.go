package dockerapi

import (
	_ "embed" // the seccomp profile
	"encoding/json"
	"slices"
	"sync"
)

// seccompProfile is derived from moby's default profile by the test in scripts/checks/seccomp.
//
//go:embed seccomp.json
var seccompProfile string

// profileFor returns the seccomp profile of a container.
func profileFor(s Spec) string {
	switch {
	case s.Proxy:
		return proxyProfile()
	case s.Folders:
		return foldersProfile()
	}
	return seccompProfile
}

// proxyProfile is the profile of containers with a proxy. It also allows TCP over IPv4, which is
// family 2. Any other protocol could make the kernel load a module.
var proxyProfile = sync.OnceValue(func() string {
	const tcp = 6
	return editProfile(func(rules []any) []any {
		return append(rules,
			allowCall("socket", argumentIs(0, 2), isStream, argumentIs(2, 0)),
			allowCall("socket", argumentIs(0, 2), isStream, argumentIs(2, tcp)),
		)
	})
})

// foldersProfile is the profile of containers with folders of the host. A guest could reach a
// socket that is later created in such a folder by name. This profile therefore allows only pairs
// of sockets, which are always connected to each other.
var foldersProfile = sync.OnceValue(func() string {
	return editProfile(func(rules []any) []any {
		var kept []any
		for _, rule := range rules {
			fields, _ := rule.(map[string]any)
			names, _ := fields["names"].([]any)
			names = slices.DeleteFunc(names, func(name any) bool { return name == "socket" })
			if fields["names"] = names; len(names) > 0 {
				kept = append(kept, fields)
			}
		}
		return kept
	})
})

// isStream is the condition that a socket is a stream (type 1). The bits above the type are flags.
var isStream = map[string]any{
	"index": 1, "value": 15, "valueTwo": 1, "op": "SCMP_CMP_MASKED_EQ",
}

// editProfile returns the profile with edited rules.
func editProfile(change func(rules []any) []any) string {
	var profile map[string]any
	if err := json.Unmarshal([]byte(seccompProfile), &profile); err != nil {
		panic(err) // the profile is embedded and tested
	}

	rules, _ := profile["syscalls"].([]any)
	profile["syscalls"] = change(rules)
	text, err := json.Marshal(profile)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(text)
}

// allowCall returns the rule that allows a system call with these arguments.
func allowCall(call string, args ...any) map[string]any {
	return map[string]any{"names": []string{call}, "action": "SCMP_ACT_ALLOW", "args": args}
}

// argumentIs returns the condition that an argument has a value.
func argumentIs(index, value int) map[string]any {
	return map[string]any{"index": index, "value": value, "op": "SCMP_CMP_EQ"}
}
