// Package prompt contains the interactive commands, which read line after line: repl and chat.
package prompt
