// Package cli contains the code that all commands share: environment, exit codes and their errors,
// terminal-safe text, output of snippets, stdin, new files and interrupts.
package cli
