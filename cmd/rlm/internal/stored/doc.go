// Package stored has the commands for what is kept: runs, sessions, trace, view and store.
package stored
