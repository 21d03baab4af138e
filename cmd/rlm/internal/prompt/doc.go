// Package prompt has the commands that read line after line: repl and chat.
package prompt
