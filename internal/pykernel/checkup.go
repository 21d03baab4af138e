package pykernel

import (
	"context"
	"regexp"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// reaching matches source that may reach into the interpreter's or the runtime's
// own parts. Such a snippet is followed by a check-up. It is no boundary: a
// snippet that hides its reach harms its own session, which then finds out
// later.
var reaching = regexp.MustCompile(`_getframe|f_back|f_globals|f_locals|f_builtins|tb_frame|gi_frame|cr_frame|\bgc\b|` +
	`__globals__|__code__|__builtins__|\bbuiltins\b|__class__|__subclasses__|\bvars\(|setattr|_rlm|` +
	`settrace|setprofile|audithook|unraisablehook|excepthook|meta_path|path_hooks|sys\.modules|` +
	`detach|__stdout__|__stderr__|\.buffer|event_loop|_running_loop|co_code|\bctypes\b|faulthandler|\bcodecs\b|linecache|__import__`)

// Reaching reports whether a snippet deserves a check-up after it has run.
func Reaching(source string) bool { return reaching.MatchString(source) }

// checkupSource is what a healthy interpreter prints "ok" for.
const checkupSource = "print('o' + str(len([1])).replace('1', 'k'))"

// Checkup runs a trivial snippet by run, apart from the session's accounts, and
// reports whether the guest still can. run is given the session to answer and
// what to run.
func Checkup(ctx context.Context, run func(s *Session, source string) (code int, err error)) bool {
	s, err := NewSession(ctx, tiers.Config{Limits: tiers.Limits{Wall: 2 * time.Second}})
	if err != nil || s.Begin(ctx, tiers.Job{}) != nil {
		return false
	}
	code, err := run(s, checkupSource)
	r := s.End(code)
	return err == nil && r.Status == tiers.StatusOK && r.Stdout == "ok\n" && r.Stderr == ""
}
