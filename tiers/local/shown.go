package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/wall/jail"
)

// systemFolders hold the programs and libraries that all users of the host share. /usr is not
// among them: images of containers keep projects in /usr/src.
var systemFolders = []string{
	"/bin", "/lib", "/lib32", "/lib64",
	"/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec",
	"/usr/share",
	"/usr/local/bin", "/usr/local/include", "/usr/local/lib", "/usr/local/lib64",
	"/usr/local/share",
}

// shown lists the host files that a jail shows.
type shown struct {
	homes  []string // home directories, which are never shown
	binds  []jail.Bind
	hidden []string // the refused folders, with reasons
}

// newShown returns the folders of the system.
func newShown() *shown {
	s := &shown{homes: findHomes()}
	for _, folder := range systemFolders {
		target, err := filepath.EvalSymlinks(folder)
		if err != nil {
			continue // it does not exist
		}
		if home := cmp.Or(s.homeIn(folder), s.homeIn(target)); home != "" {
			s.hide(folder, fmt.Errorf("it contains the home directory %s", home))
		} else if isFolder(folder) {
			s.binds = append(s.binds, jail.Bind{Source: folder})
		}
	}
	return s
}

// has reports whether a path is shown.
func (s *shown) has(path string) bool {
	return slices.ContainsFunc(s.binds, func(b jail.Bind) bool {
		return path == b.Source || strings.HasPrefix(path, b.Source+"/")
	})
}

// list returns the paths that are shown.
func (s *shown) list() []string {
	var all []string
	for _, b := range s.binds {
		all = append(all, b.Source)
	}
	return all
}

// describe lists the shown paths, with the system's folders abbreviated to two words.
func (s *shown) describe() string {
	all := []string{"the system's folders"}
	for _, path := range s.list() {
		if !slices.Contains(systemFolders, path) {
			all = append(all, path)
		}
	}
	return strings.Join(all, ", ")
}

// addFile shows a file, if it exists.
func (s *shown) addFile(path string) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && !s.has(path) {
		s.binds = append(s.binds, jail.Bind{Source: path})
	}
}

// addFolder shows a folder, unless the folder contains something confidential; then addFolder
// returns the reason. A folder that does not exist is not an error.
func (s *shown) addFolder(folder string) error {
	if !isFolder(folder) || s.has(folder) {
		return nil
	}
	target, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}

	for _, path := range []string{folder, target} {
		if home := s.homeIn(path); home != "" {
			return fmt.Errorf("it is or contains the home directory %s", home)
		}
	}
	switch secret, err := findSecret(target, secretDepth); {
	case err != nil:
		return err
	case secret != "":
		return fmt.Errorf("it contains %s", secret)
	}

	s.binds = slices.DeleteFunc(s.binds, func(b jail.Bind) bool {
		return strings.HasPrefix(b.Source, folder+"/")
	})
	s.binds = append(s.binds, jail.Bind{Source: folder})
	return nil
}

// addNamed shows a folder that the caller of the tier names. It must exist.
func (s *shown) addNamed(folder string) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("cannot use --local-folder: %w", err)
	case !info.IsDir():
		return fmt.Errorf("cannot use --local-folder %s: it is a file: name its folder", folder)
	}
	if err := s.addFolder(path); err != nil {
		return fmt.Errorf("snippets must not see the folder %s of --local-folder: %w", folder, err)
	}
	return nil
}

// settle sorts the shown paths. A refused folder is not listed as hidden if it is below a folder
// that is shown after all.
func (s *shown) settle() {
	slices.SortFunc(s.binds, func(a, b jail.Bind) int { return strings.Compare(a.Source, b.Source) })
	slices.Sort(s.hidden)
	s.hidden = slices.Compact(s.hidden)
}

// tryFolder shows a folder, or records why it is hidden.
func (s *shown) tryFolder(folder string) {
	if err := s.addFolder(folder); err != nil {
		s.hide(folder, err)
	}
}

// hide records that a folder is hidden, and why.
func (s *shown) hide(folder string, why error) {
	s.hidden = append(s.hidden, fmt.Sprintf("%s: %v", folder, why))
}

// homeIn returns a home directory that a folder is or contains, or "".
func (s *shown) homeIn(folder string) string {
	for _, home := range s.homes {
		if folder == "/" || home == folder || strings.HasPrefix(home, folder+"/") {
			return home
		}
	}
	if filepath.Dir(folder) == "/home" {
		return folder // the user is not listed in /etc/passwd
	}
	return ""
}

// findHomes returns the home directories of root, of this user and of all human users. System
// users have theirs in folders that all users share.
func findHomes() []string {
	homes := []string{"/home", "/root"}
	if own, err := os.UserHomeDir(); err == nil {
		homes = append(homes, own)
	}

	const firstPerson, nobody = 1000, 65534
	text, _ := os.ReadFile("/etc/passwd") // without it, only the homes above are known
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, ":")
		if len(fields) < 7 {
			continue
		}
		if uid, err := strconv.Atoi(fields[2]); err == nil && uid >= firstPerson && uid < nobody {
			homes = append(homes, fields[5])
		}
	}

	for _, home := range homes {
		if target, err := filepath.EvalSymlinks(home); err == nil {
			homes = append(homes, target)
		}
	}
	return slices.DeleteFunc(homes, func(home string) bool {
		return !filepath.IsAbs(home) || filepath.Clean(home) == "/"
	})
}

// secretDepth is how deep findSecret looks: from the lib of a prefix into each project in its
// site-packages.
const secretDepth = 4

// secretNames are files and folders with keys, passwords and the history of a project.
var secretNames = []string{
	".aws", ".azure", ".docker", ".env", ".git", ".git-credentials", ".gnupg", ".kube", ".netrc",
	".npmrc", ".pgpass", ".pypirc", ".ssh", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa",
}

// keyEndings are the extensions of files with keys. Packages contain public certificates and test
// keys with the same extensions, so findSecret looks for them only in the folder itself.
var keyEndings = []string{".key", ".p12", ".pem", ".pfx"}

// findSecret returns the first path below a folder with the name of a secret, or "". It follows
// no links: in a jail they lead nowhere.
func findSecret(folder string, depth int) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}

	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(folder, name)
		isKey := depth == secretDepth && slices.Contains(keyEndings, filepath.Ext(name))
		if isKey || slices.Contains(secretNames, name) || strings.HasPrefix(name, ".env.") {
			return path, nil
		}
		if !entry.IsDir() || depth == 1 {
			continue
		}

		found, err := findSecret(path, depth-1)
		if found != "" || err != nil && !errors.Is(err, os.ErrPermission) {
			return found, err
		}
	}
	return "", nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
