// Package filelock locks files between processes. The end of a process unlocks what it has
// locked, however it ends.
package filelock
