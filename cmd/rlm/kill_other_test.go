//go:build !unix

package main

// rlmKilled needs a signal that nobody can catch.
func rlmKilled() { panic("there is no SIGKILL") }
