//go:build !linux

package bigtext

import "os"

// populate does nothing where the system has no such call.
func populate([]byte) {}

// fileHoles returns none: only Linux is asked.
func fileHoles(*os.File, int64) []span { return nil }
