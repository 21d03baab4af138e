package escapes

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

// Case is one attempt to escape, or to do harm. It is a file of testdata, in the folder of its
// class, and begins with comments: a line about its goal, then lines of the form `# key: value`:
//
//	with    files of the folder shared that stand before it, and before its second half
//	harm    its effect on an interpreter without a sandbox, if it touches no canary: see harm
//	unsafe  why nothing shows its harm where no sandbox contains it
//	fake    PLACE NAME: without a sandbox, PLACE is a test folder that contains NAME: see newFake
//	where   what a machine must have to show it without a sandbox; others skip it
//	before  without a sandbox, what runs before it
//	env     without a sandbox, a variable of the environment
//	root    why only root can do it without a sandbox
//	fresh   it spoils its sandbox, why
//	one     "process": without a sandbox, both tenants share an interpreter
//	open    tiers where it succeeds, as SECURITY.md or the tier's limitations say
//	ends    "variously": how it ends may differ from run to run
//	NAME    for tier NAME: the layers of its wall that stop it; each of them suffices
//
// The placeholders CANARY_… in the source stand for literals; see canaries.
type Case struct {
	// Class is the folder, and Name is the file name without its extension.
	Class, Name string
	// Tries describes the goal in a sentence.
	Tries string
	// Source is the snippet.
	Source string
	// Then, if set, is a snippet of another tenant in a separate sandbox. It runs alongside the
	// first, or after the first sandbox has closed if After is set.
	Then  string
	After bool

	keys map[string]string
}

// ID returns the name of the case in the matrix.
func (c Case) ID() string { return c.Class + "/" + c.Name }

// Layers returns the layers of a tier's wall that contain the case, in the tier's terms, or nil if
// none is relevant.
func (c Case) Layers(tier string) []string {
	if c.keys[tier] == "" {
		return nil
	}
	return strings.Split(c.keys[tier], " ")
}

// isOpen reports whether the case is documented to succeed in a tier.
func (c Case) isOpen(tier string) bool {
	return slices.Contains(strings.Fields(c.keys["open"]), tier)
}

//go:embed testdata
var testdata embed.FS

// shared contains files with which several cases begin.
//
//go:embed shared
var shared embed.FS

// The classes of the corpus, in the order of the matrix.
var classes = []string{
	"introspection", "files", "links", "container", "proc", "kernel", "devices", "network", "signals",
	"limits", "exhaustion", "session", "hostcalls", "amplification", "time",
	"tenants", "egress", "contexts", "restart", "calltrees",
}

// needsFreshSandbox reports whether the case needs a separate sandbox.
func (c Case) needsFreshSandbox() bool {
	return c.keys["fresh"] != "" || c.isBrief() || c.Class == "links" || c.Then != "" ||
		c.Class == "contexts" || c.Class == "restart"
}

// needsSession reports whether the case attacks a session, so that an interpreter without a session
// demonstrates nothing.
func (c Case) needsSession() bool {
	return c.Class == "session" || c.Class == "hostcalls" || c.Class == "amplification"
}

// isBrief reports whether only a limit ends the case. A case with a huge error ends by itself, but
// late on a busy machine.
func (c Case) isBrief() bool {
	return slices.Contains([]string{"session", "time", "restart", "calltrees"}, c.Class) ||
		c.Class == "exhaustion" && c.Name != "errors"
}

// Cases reads the corpus.
func Cases(t *testing.T) []Case {
	t.Helper()
	var cases []Case
	err := fs.WalkDir(testdata, "testdata", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(testdata, file)
		if err != nil {
			return err
		}

		c := Case{
			Class: path.Base(path.Dir(file)), Name: strings.TrimSuffix(d.Name(), ".py"),
			keys: map[string]string{},
		}
		if !slices.Contains(classes, c.Class) {
			return fmt.Errorf("%s: there is no class %s", file, c.Class)
		}
		rest := string(text)
		for strings.HasPrefix(rest, "# ") {
			line, after, _ := strings.Cut(rest[2:], "\n")
			rest = after
			if key, value, found := strings.Cut(line, ": "); found && c.Tries != "" {
				c.keys[key] = value
			} else {
				c.Tries = line
			}
		}

		c.Source, c.Then, _ = strings.Cut(rest, "# in another sandbox\n")
		if c.Then == "" {
			c.Source, c.Then, c.After = strings.Cut(rest, "# in the next sandbox\n")
		}
		if err := c.addShared(); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		cases = append(cases, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(cases, func(a, b Case) int {
		if by := slices.Index(classes, a.Class) - slices.Index(classes, b.Class); by != 0 {
			return by
		}
		return strings.Compare(a.Name, b.Name)
	})

	return cases
}

// addShared prepends the files named by the case to its source.
func (c *Case) addShared() error {
	before := ""
	for _, name := range strings.Fields(c.keys["with"]) {
		text, err := fs.ReadFile(shared, "shared/"+name+".py")
		if err != nil {
			return err
		}
		before += string(text)
	}

	c.Source = before + c.Source
	if c.Then != "" {
		c.Then = before + c.Then
	}
	return nil
}

// Named returns the case with an ID.
func Named(t *testing.T, id string) Case {
	t.Helper()
	cases := Cases(t)
	i := slices.IndexFunc(cases, func(c Case) bool { return c.ID() == id })
	if i < 0 {
		t.Fatalf("the corpus has no case %s", id)
	}
	return cases[i]
}
