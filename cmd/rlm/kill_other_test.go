//go:build !unix

package main

// rlmKilled needs a signal that cannot be caught.
func rlmKilled() { panic("there is no SIGKILL") }
