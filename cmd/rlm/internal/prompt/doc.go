// Package prompt contains the commands that read one line after another: repl and chat.
package prompt
