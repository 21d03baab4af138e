package escapes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// Cases of the classes contexts and restart need actions of the host while they run. They request
// an action by name, such as ask("truncate").

// late is how long the host takes for a call that should still run when its case ends.
const late = time.Second

// largeText is the size of context_1, in bytes. It is mapped, not copied.
const largeText = 9 << 20

// contextFolder returns the folder of the contexts of a case.
func (c *canaries) contextFolder() string { return filepath.Join(c.dir, "contexts") }

// makeContexts creates a folder of text files like an attacker's, and a large text file.
func (c *canaries) makeContexts(t *testing.T) []tiers.Input {
	t.Helper()
	dir := c.contextFolder()
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.MkdirAll(path("sub"), 0o755), //nolint:gosec // like the folder around it
		os.WriteFile(path("sub/own"), []byte("plain"), 0o600),
		os.WriteFile(path("plain"), []byte("plain"), 0o600),
		os.WriteFile(path("large"), []byte(strings.Repeat("a line of text\n", largeText/15)), 0o600),
		os.Chmod(dir, 0o755), os.Chmod(path("large"), 0o644), // tiers mount such a file
		os.WriteFile(path("sparse"), nil, 0o600), os.Truncate(path("sparse"), 3<<30),
		os.Symlink("../own", path("link")), os.Symlink("..", path("up")),
		makePipe(path("pipe")),
	)
	if err != nil {
		t.Fatal(err)
	}
	c.before = c.describeState(t)

	folder, err := bigtext.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := bigtext.Open(path("large"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(folder.Close(), text.Close()) }) // some are broken on purpose
	return []tiers.Input{{Name: "a\n\x1b]0;folder\arlm: forged", Dir: folder}, {Name: "large", Text: text}}
}

// direct performs on the host what a case requests.
func (s *subject) direct(ctx context.Context, call tiers.Call) error {
	what := ""
	if len(call.Args) > 0 && s.watch != nil {
		what = strings.Trim(string(call.Args[0]), `"`)
	}
	if what == "" {
		return nil
	}
	dir := s.watch.contextFolder()
	path := func(name string) string { return filepath.Join(dir, name) }

	switch what {
	case "link":
		return s.replace(os.Remove(path("plain")), os.Symlink("../own", path("plain")))
	case "pipe":
		return s.replace(os.Remove(path("plain")), makePipe(path("plain")))
	case "folder":
		return s.replace(os.RemoveAll(path("sub")), os.Symlink("..", path("sub")))
	case "truncate":
		return s.replace(os.Truncate(path("large"), 0))
	case "rewrite":
		secret := s.watch.secrets["a file of another user"] + "\n"
		return s.replace(os.WriteFile(path("large"), []byte(strings.Repeat(secret, largeText/len(secret))), 0o600))
	case "late":
		time.Sleep(late)
	case "cancel":
		s.cancel()
		<-ctx.Done()
		time.Sleep(late / 10)
	}
	return nil
}

// replace records the state of the folder after the host has changed it.
func (s *subject) replace(errs ...error) error {
	s.watch.before = s.watch.describeState(s.t)
	return errors.Join(errs...)
}

// bareStage is the stage of an interpreter without a sandbox. It opens contexts without care, and
// the interpreter itself performs the host's actions.
const bareStage = `import mmap, os, time
ROOT, OWN = %ROOT%, %OWN%
class Folder:
    def __getitem__(self, name): return open(os.path.join(ROOT, name)).read()
class Text:
    path = ROOT + '/large'
    def __init__(self):
        with open(self.path) as f: self.map = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    def __getitem__(self, part): return self.map[part].decode()
context, context_1 = Folder(), os.path.exists(ROOT) and Text()
def ask(what):
    if what in ('link', 'pipe'): os.remove(ROOT + '/plain')
    if what == 'link': os.symlink('../own', ROOT + '/plain')
    if what == 'pipe': os.mkfifo(ROOT + '/plain')
    if what == 'folder':
        os.remove(ROOT + '/sub/own'); os.rmdir(ROOT + '/sub'); os.symlink('..', ROOT + '/sub')
    if what == 'truncate': os.truncate(ROOT + '/large', 0)
    if what == 'rewrite':
        with open(ROOT + '/large', 'r+') as f: f.write((open(OWN).read() + '\n') * 1000)
    if what in ('late', 'cancel'): time.sleep(600)
`

// setBareStage returns the stage for the canaries of a case.
func (c *canaries) setBareStage() string {
	return strings.NewReplacer("%ROOT%", strconv.Quote(c.contextFolder()), "%OWN%", c.words["CANARY_OWN"]).
		Replace(bareStage)
}
