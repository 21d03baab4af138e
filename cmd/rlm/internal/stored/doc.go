// Package stored contains the commands for stored data: runs, sessions, trace, view and store.
package stored
