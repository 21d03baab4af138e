package dockerapi

import (
	_ "embed" // the seccomp profile
	"encoding/json"
	"slices"
	"sync"
)

// seccompProfile is derived from moby's default profile by the package's test.
//
//go:embed seccomp.json
var seccompProfile string

// profileFor is the seccomp profile of a container.
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
// family 2. For another protocol, the kernel could load a module.
var proxyProfile = sync.OnceValue(func() string {
	const tcp = 6
	return editProfile(func(rules []any) []any {
		return append(rules,
			allowCall("socket", argumentIs(0, 2), isStream, argumentIs(2, 0)),
			allowCall("socket", argumentIs(0, 2), isStream, argumentIs(2, tcp)),
		)
	})
})

// foldersProfile is the profile of containers that see folders of the host. A socket that
// is made there later could be reached by its name. So it allows no sockets but pairs that
// are connected from the start, and stay so.
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

// isStream is the condition that a socket is a stream, which is type 1. The bits above the type
// are flags.
var isStream = map[string]any{
	"index": 1, "value": 15, "valueTwo": 1, "op": "SCMP_CMP_MASKED_EQ",
}

// editProfile is the profile with its rules changed.
func editProfile(change func(rules []any) []any) string {
	var profile map[string]any
	if err := json.Unmarshal([]byte(seccompProfile), &profile); err != nil {
		panic(err) // it is embedded and tested
	}

	rules, _ := profile["syscalls"].([]any)
	profile["syscalls"] = change(rules)
	text, err := json.Marshal(profile)
	if err != nil {
		panic(err) // it was decoded
	}
	return string(text)
}

// allowCall is the rule that allows a call with such arguments.
func allowCall(call string, args ...any) map[string]any {
	return map[string]any{"names": []string{call}, "action": "SCMP_ACT_ALLOW", "args": args}
}

// argumentIs is the condition that an argument has a value.
func argumentIs(index, value int) map[string]any {
	return map[string]any{"index": index, "value": value, "op": "SCMP_CMP_EQ"}
}
