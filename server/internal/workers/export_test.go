//go:build linux && (amd64 || arm64)

package workers

import "strings"

// This initializer sets the hooks before an init function starts the worker for package jail.
var _ = func() bool { testHook, testSnippet = attack, hang; return true }()

// hangs is the beginning of a snippet that nothing can end.
const hangs = "# hang"

func hang(source string) {
	if strings.HasPrefix(source, hangs) {
		select {}
	}
}

// Attack makes the worker of a sandbox execute an order, as native code could, and returns the
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
