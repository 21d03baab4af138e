package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// program is the system's own program for its keyring. Keys pass through its stdin and stdout,
// never through its arguments, which other users can read.
type program struct {
	name string
	// storing returns the arguments and the stdin with which the program stores a key. It returns
	// false for a key that the program cannot store.
	storing           func(provider, key string) (args []string, stdin string, ok bool)
	reading, removing func(provider string) []string
}

// service is the name of rlm in keyrings.
const service = "rlm"

// secretTool is the program of the Secret Service, which GNOME Keyring and KWallet implement.
var secretTool = program{
	name: "secret-tool",
	storing: func(provider, key string) ([]string, string, bool) {
		args := []string{"store", "--label", "rlm: key of " + provider, "service", service, "provider", provider}
		return args, key, true
	},
	reading: func(provider string) []string {
		return []string{"lookup", "service", service, "provider", provider}
	},
	removing: func(provider string) []string {
		return []string{"clear", "service", service, "provider", provider}
	},
}

// plain contains the characters that need no quotes in a command of macOS's security.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=:@-"

// security is the program of macOS's keychain. It reads commands from its stdin.
var security = program{
	name: "security",
	storing: func(provider, key string) ([]string, string, bool) {
		command := fmt.Sprintf("add-generic-password -U -s %s -a %s -w %s\n", service, provider, key)
		return []string{"-i"}, command, strings.Trim(key, plain) == ""
	},
	reading: func(provider string) []string {
		return []string{"find-generic-password", "-s", service, "-a", provider, "-w"}
	},
	removing: func(provider string) []string {
		return []string{"delete-generic-password", "-s", service, "-a", provider}
	},
}

// systemKeyring returns the program for this system's keyring. For systems without one, it returns
// the zero program, which fails.
func systemKeyring() program {
	switch runtime.GOOS {
	case "windows", "plan9", "js", "wasip1", "android", "ios":
		return program{}
	case "darwin":
		return security
	}
	return secretTool
}

// longest bounds the running time of a program, which may prompt the user to unlock the keyring.
const longest = 30 * time.Second

// errNone is the error of a system without a program for its keyring.
var errNone = errors.New("this system has no keyring that rlm can use")

// store stores a key and reads it again: some programs report no failure.
func (p program) store(ctx context.Context, provider, key string) error {
	if p.name == "" {
		return errNone
	}
	args, stdin, ok := p.storing(provider, key)
	if !ok {
		return errors.New("the key has characters that the keyring does not take")
	}
	if _, err := p.run(ctx, stdin, args); err != nil {
		return err
	}

	stored, err := p.lookUp(ctx, provider)
	if err == nil && stored != key {
		err = errors.New("the keyring returned another key than was stored")
	}
	return err
}

// lookUp returns a stored key.
func (p program) lookUp(ctx context.Context, provider string) (string, error) {
	if p.name == "" {
		return "", errNone
	}
	out, err := p.run(ctx, "", p.reading(provider))
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(out)
	return key, Check(key)
}

// remove removes a stored key.
func (p program) remove(ctx context.Context, provider string) error {
	if p.name == "" {
		return errNone
	}
	_, err := p.run(ctx, "", p.removing(provider))
	return err
}

// run runs the program and returns its output. The error contains the last line of the program's
// stderr.
func (p program) run(ctx context.Context, stdin string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	var out, complaints head
	//nolint:forbidigo // the system's own program, with our arguments: no snippet is near
	cmd := exec.CommandContext(ctx, p.name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &complaints
	cmd.WaitDelay = time.Second

	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not answer within %s: unlock the keyring", p.name, longest)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(complaints.String()), "\n")
		return "", fmt.Errorf("%s failed: %w: %.200s", p.name, err, lines[len(lines)-1])
	}
	return out.String(), nil
}

// head keeps the beginning of an output and ignores the rest.
type head struct{ bytes.Buffer }

// Write implements [io.Writer].
func (h *head) Write(text []byte) (int, error) {
	_, _ = h.Buffer.Write(text[:min(len(text), 2*MaxKey-h.Len())]) // it never fails
	return len(text), nil
}
