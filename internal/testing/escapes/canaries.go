package escapes

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// environment is the variable of the test process that contains a secret.
const environment = "RLM_ESCAPE_CANARY"

// canaries are the things on the host that one case of the corpus could touch. Each case has its
// own, so that a touch can be attributed to it.
type canaries struct {
	dir     string            // a folder of the host, for the guest to find
	secrets map[string]string // strings that only the canary with that name contains
	words   map[string]string // literals for the placeholders of the corpus
	wires   []*wire
	victim  *exec.Cmd
	died    chan struct{} // closed when the victim has died
	before  string        // the initial state of the folder
}

// canaryWord matches the placeholders for canaries in a case's source.
var canaryWord = regexp.MustCompile(`\bCANARY_[A-Z]+\b`)

// newCanaries creates the canaries; the end of the test removes them. The environment's secret is a
// parameter, since all cases share one environment.
func newCanaries(t *testing.T, source, variable string) *canaries {
	t.Helper()
	c := &canaries{secrets: map[string]string{"the environment": variable}, words: map[string]string{}}
	c.setWord("PROOF", c.makeSecret("the kernel"))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}

	c.words["CANARY_HOST"] = strconv.Quote(host)
	c.makeFolder(t)
	for _, w := range [][3]string{
		{"TCP", "tcp", "127.0.0.1:0"},
		{"UDP", "udp", "127.0.0.1:0"},
		{"DNS", "udp", "127.0.0.1:0"},
		{"SOCKET", "unix", filepath.Join(c.dir, "socket")},
		{"ABSTRACT", "unix", "@rlm-" + rand.Text()},
	} {
		if strings.Contains(source, "CANARY_"+w[0]) {
			c.words["CANARY_"+w[0]] = c.listen(t, w[0], w[1], w[2])
		}
	}

	if strings.Contains(source, "CANARY_VICTIM") {
		c.startVictim(t)
	}
	c.before = c.describeState(t)
	return c
}

// hideIn puts a secret into the world beyond the proxy.
func (c *canaries) hideIn(w *world) {
	path := w.hide(c.makeSecret("another host"), rand.Text())
	c.words["CANARY_PATH"] = strconv.Quote(path)
}

// makeSecret creates a string that only the canary with that name contains.
func (c *canaries) makeSecret(name string) string {
	c.secrets[name] = "canary-" + rand.Text()
	return c.secrets[name]
}

// setWord sets a literal. It splits the string into two pieces, so that a traceback that shows the
// source does not show the whole string.
func (c *canaries) setWord(name, text string) {
	half := len(text) / 2
	c.words["CANARY_"+name] = fmt.Sprintf("(%q %q)", text[:half], text[half:])
}

// fill replaces the placeholders in a source with literals.
func (c *canaries) fill(source string) string {
	return canaryWord.ReplaceAllStringFunc(source, func(word string) string {
		return cmp.Or(c.words[word], word)
	})
}

// makeFolder creates a folder of the host that all users may read. It contains a file and a folder
// that all users may write, a file only for the test's user, and a program that runs as that user.
func (c *canaries) makeFolder(t *testing.T) {
	t.Helper()
	//nolint:usetesting // not below /tmp: sandboxes have their own
	dir, err := os.MkdirTemp("/var/tmp", "rlm-canary")
	if err != nil {
		dir = t.TempDir()
	}

	c.dir = dir
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, open, own, program := filepath.Join(dir, "file"), filepath.Join(dir, "open"), filepath.Join(dir, "own"),
		filepath.Join(dir, "program")
	cat, _ := os.ReadFile("/bin/cat") // if there is none, the program is empty
	//nolint:gosec // all of it shall be within reach
	err = errors.Join(
		os.Chmod(dir, 0o755), os.WriteFile(file, []byte(c.makeSecret("a file")), 0o600), os.Chmod(file, 0o666),
		os.WriteFile(own, []byte(c.makeSecret("a file of another user")), 0o600),
		os.Mkdir(open, 0o755), os.Chmod(open, 0o777), os.WriteFile(filepath.Join(open, "doomed"), nil, 0o600),
		os.WriteFile(program, cat, 0o755), os.Chmod(program, 0o755|os.ModeSetuid),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"FILE": file, "FOLDER": dir, "OPEN": open, "OWN": own,
		"PROGRAM": program,
	} {
		c.words["CANARY_"+name] = strconv.Quote(path)
	}

	c.words["CANARY_OUT"] = `"/out"`
}

// startVictim starts a process with secrets in places where other processes could read them.
func (c *canaries) startVictim(t *testing.T) {
	t.Helper()
	c.victim = exec.CommandContext(t.Context(), "sleep", "600")
	c.victim.Args[0] = c.makeSecret("the arguments of a process")
	c.victim.Env = []string{"SECRET=" + c.makeSecret("the environment of a process")}
	if err := c.victim.Start(); err != nil {
		t.Fatal(err)
	}

	c.died = make(chan struct{})
	go func() {
		defer close(c.died)
		_ = c.victim.Wait() // a signal ends the victim
	}()
	t.Cleanup(func() {
		_ = c.victim.Process.Kill() // fails if the victim has ended
		<-c.died
	})

	c.words["CANARY_VICTIM"] = strconv.Itoa(c.victim.Process.Pid)
}

// describeState returns the visible state of the folder: names, modes, lengths and contents.
func (c *canaries) describeState(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}

		fmt.Fprintf(&b, "%s %v", path, info.Mode())
		if info.Mode().IsRegular() && info.Size() < 1<<24 {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(text))
		}

		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// findTouched lists the touched canaries, or returns an empty string. A touch is a secret in the
// sandbox's output, a changed folder, a connection or a datagram that arrived, or a process that
// ended.
func (c *canaries) findTouched(t *testing.T, said string) string {
	t.Helper()
	var touched []string
	for name, secret := range c.secrets {
		if secret != "" && strings.Contains(said, secret) {
			touched = append(touched, "it knows the secret of "+name)
		}
	}

	if c.describeState(t) != c.before {
		touched = append(touched, "it changed the host's folder")
	}
	for _, w := range c.wires {
		heard, err := w.wasReached(c.dir)
		if err != nil {
			t.Errorf("cannot ask the listener %s: %v", w.name, err)
		}
		if heard {
			touched = append(touched, "it reached the listener "+w.name)
		}
	}

	if c.victim != nil {
		select {
		case <-c.died:
			touched = append(touched, "it ended a process of the host")
		default:
		}
	}

	return strings.Join(touched, ", ")
}

// wire is a listener to which only the guest and the judge connect.
type wire struct {
	name   string
	stream net.Listener
	packet net.PacketConn
}

// listen starts a listener, and returns a literal with its address.
func (c *canaries) listen(t *testing.T, name, network, address string) string {
	t.Helper()
	w := &wire{name: name}
	if network == "udp" {
		l, err := (&net.ListenConfig{}).ListenPacket(t.Context(), network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		w.packet = l
		c.wires = append(c.wires, w)
		return portOf(l.LocalAddr())
	}

	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w.stream = l
	c.wires = append(c.wires, w)

	switch {
	case network == "tcp":
		return portOf(l.Addr())
	case address[0] == '@':
		return strconv.Quote(address[1:])
	}

	if err := os.Chmod(address, 0o777); err != nil { //nolint:gosec // the guest must be able to connect
		t.Fatal(err)
	}
	return strconv.Quote(address)
}

func portOf(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String()) // one of our addresses
	return port
}

// heardIn bounds the time until the judge's own connection arrives.
const heardIn = 10 * time.Second

// wasReached reports whether anything connected before the judge. Connections are queued in order,
// and the judge, which recognises its own address, connects last.
func (w *wire) wasReached(dir string) (bool, error) {
	if w.packet != nil {
		own, err := net.Dial("udp", w.packet.LocalAddr().String()) //nolint:noctx // a datagram does not wait
		if err != nil {
			return false, err
		}
		defer own.Close()
		if _, err := own.Write([]byte("judge")); err != nil {
			return false, err
		}
		if err := w.packet.SetReadDeadline(time.Now().Add(heardIn)); err != nil {
			return false, err
		}
		_, from, err := w.packet.ReadFrom(make([]byte, 1<<16))
		return err == nil && from.String() != own.LocalAddr().String(), err
	}

	dialer := net.Dialer{Timeout: heardIn}
	if w.stream.Addr().Network() == "unix" {
		dialer.LocalAddr = &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "judge-"+w.name)}
	}
	own, err := dialer.Dial(w.stream.Addr().Network(), w.stream.Addr().String())
	if err != nil {
		return false, err
	}
	defer own.Close()
	first, err := w.stream.Accept()
	if err != nil {
		return false, err
	}
	defer first.Close()

	return first.RemoteAddr().String() != own.LocalAddr().String(), nil
}
