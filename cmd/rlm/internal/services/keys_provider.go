package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/internal/keep/keyring"
	"github.com/rlmhq/rlm/internal/text/spelling"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

const keysSetLong = `Keep the key of a provider of models for later commands.

The key is typed, or comes from stdin. It is not an argument, because other users can read
those. It goes into the system's keyring if that answers (secret-tool on Linux and BSD,
security on macOS), otherwise into a file below the user's configuration directory that
only this user can read. The command says which.

The provider's environment variable, such as OPENAI_API_KEY, takes precedence over the key
that is kept.`

// keyRing returns the keyring of providers' keys.
func keyRing() keyring.Ring { return keyring.Ring{File: config.KeysFile()} }

func newKeysSet(e *cli.Env) *cobra.Command {
	var onlyFile bool
	cmd := &cobra.Command{
		Use: "set PROVIDER", Short: "Keep the key of a provider", Long: keysSetLong,
		Example: `  rlm keys set openai
  pass show groq | rlm keys set groq`,
		Args: oneProvider,
		RunE: func(cmd *cobra.Command, args []string) error {
			provider := args[0]

			key, err := readKey(cmd.Context(), e, provider)
			if err != nil {
				return cli.Usage(err)
			}
			place, err := keyRing().Set(cmd.Context(), provider, key, onlyFile)
			if err != nil {
				return cli.Usage(fmt.Errorf("cannot keep the key of %s: %w", provider, err))
			}

			note := e.NoteUnless(false)
			note("the key of %s is in %s", provider, place)
			noteOther(e, provider, note)
			return nil
		},
	}
	cmd.Flags().BoolVar(&onlyFile, "file", false,
		"keep the key in the file, for programs that run while the system's keyring is locked")
	return cmd
}

func newKeysRemove(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "remove PROVIDER", Aliases: []string{"rm"}, Short: "Remove the key of a provider", Args: oneProvider,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := keyRing().Remove(cmd.Context(), args[0])
			if err == nil && !found {
				err = fmt.Errorf("there is no key of %s: rlm keys list shows those that are kept", args[0])
			}
			if err != nil {
				return cli.Usage(err)
			}
			noteOther(e, args[0], e.NoteUnless(false))
			return nil
		},
	}
}

// noteOther notes a key that takes precedence over the stored ones.
func noteOther(e *cli.Env, provider string, note func(string, ...any)) {
	for _, name := range providers.KeyVariables(provider) {
		if os.Getenv(name) != "" {
			note("%s is set, and takes precedence over the keys that are kept", name)
		}
	}
	if e.Settings.Keys[provider] != "" {
		note("the settings have a key of %s (%s), which takes precedence over all others",
			provider, e.Settings.From("keys"))
	}
}

// oneProvider requires a provider as the only argument. Its errors never repeat a second argument,
// which may be a key.
func oneProvider(_ *cobra.Command, args []string) error {
	names := providers.Names()
	switch {
	case len(args) == 0:
		return fmt.Errorf("give a provider: %s", strings.Join(names, ", "))
	case len(args) > 1:
		return errors.New("give one provider, and not the key: it is typed or comes from stdin. " +
			"A key in the arguments is visible to others and kept by your shell, so replace it at the provider")
	case slices.Contains(names, args[0]):
		return nil
	}

	// The argument may be a key, so the error does not repeat it.
	if meant := spelling.Nearest(strings.ToLower(args[0]), names); meant != "" {
		return fmt.Errorf("unknown provider: did you mean %s?", meant)
	}
	return fmt.Errorf("unknown provider: give one of %s; keys of clients of rlm serve are made with rlm keys create",
		strings.Join(names, ", "))
}

// readKey reads a key from the terminal, without echo, or from stdin.
func readKey(ctx context.Context, e *cli.Env, provider string) (key string, err error) {
	if e.Terminal && e.Input != nil {
		_, _ = fmt.Fprintf(e.Stderr, "key of %s (it stays invisible): ", provider)
		key, err = readHidden(ctx, e.Input)
		_, _ = fmt.Fprintln(e.Stderr)
	} else {
		key, err = cli.ReadAll(e.Stdin, keyring.MaxKey+16, "the key")
	}
	if err != nil {
		return "", err
	}

	key = strings.TrimSpace(key)
	if err := keyring.Check(key); err != nil {
		return "", fmt.Errorf("cannot keep the key of %s: %w", provider, err)
	}
	return key, nil
}

// readHidden reads a line from a terminal without echo. An interrupt restores the terminal.
func readHidden(ctx context.Context, terminal *os.File) (string, error) {
	fd := int(terminal.Fd()) //nolint:gosec // a file descriptor is small
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}

	type result struct {
		line []byte
		err  error
	}

	read := make(chan result, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		return string(r.line), r.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}
