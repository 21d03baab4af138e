// Package cli has what all commands share: their environment, exit codes and errors with them, text that is safe
// on a terminal, the output of snippets, stdin, new files and interrupts.
package cli
