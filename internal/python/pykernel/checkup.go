package pykernel

import (
	"context"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/tiers"
)

// reaching matches source that may reach into the internals of the interpreter or the runtime. A
// check-up follows such a snippet. This pattern is not a security boundary: a snippet that evades
// it harms only its own session, and is detected later.
var reaching = lazyregexp.New(
	`_getframe|f_back|f_globals|f_locals|f_builtins|tb_frame|gi_frame|cr_frame|\bgc\b|` +
		`__globals__|__code__|__builtins__|\bbuiltins\b|__class__|__subclasses__|\bvars\(|setattr|_rlm|` +
		`settrace|setprofile|audithook|unraisablehook|excepthook|meta_path|path_hooks|sys\.modules|` +
		`detach|__stdout__|__stderr__|\.buffer|event_loop|_running_loop|co_code|` +
		`\bctypes\b|faulthandler|\bcodecs\b|linecache|__import__`,
)

// NeedsCheckup reports whether a snippet may have damaged its interpreter.
func NeedsCheckup(source string) bool { return reaching.MatchString(source) }

// checkupSource makes a healthy interpreter print "ok". It takes the functions from the builtins, a
// module or a dict, because the session may have rebound str or print.
const checkupSource = "(lambda b: b['print']('o' + b['str'](b['len']([1])).replace('1', 'k')))(" +
	"(lambda b: b if {}.__class__ in b.__class__.__mro__ else b.__dict__)((lambda: 0).__globals__['__builtins__']))"

// IsHealthy runs a trivial snippet with separate accounts, and reports whether the interpreter
// ran it correctly. run receives the accounts and the source.
func IsHealthy(
	ctx context.Context, run func(a *session.Accounts, source string) (code int, err error),
) bool {
	cfg := tiers.Config{Limits: tiers.Limits{Wall: 2 * time.Second}}
	a, err := session.NewAccounts(ctx, cfg)
	if err != nil || a.Begin(ctx, tiers.Job{}) != nil {
		return false
	}

	code, err := run(a, checkupSource)
	r := a.End(code)

	return err == nil && r.Status == tiers.StatusOK && r.Stdout == "ok\n" && r.Stderr == ""
}
