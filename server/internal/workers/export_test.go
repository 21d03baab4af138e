//go:build linux && (amd64 || arm64)

package workers

import "strings"

// The hooks are set before package jail starts the worker from an init function.
var _ = func() bool { testHook, testSnippet = attack, hang; return true }()

// hangs begins a snippet that nothing can end.
const hangs = "# hang"

func hang(source string) {
	if strings.HasPrefix(source, hangs) {
		select {}
	}
}

// Attack makes the worker of a sandbox do something that native code could do, and returns the
// result.
func (s *sandbox) Attack(order string) (string, error) {
	s.using.Lock()
	w := s.worker
	s.using.Unlock()
	ctx, cancel := withTestTimeout()
	defer cancel()

	var answer attackResult
	err := w.call(ctx, order, nil, &answer)
	return answer.Said, err
}

type attackResult struct {
	Said string `json:"said"`
}
