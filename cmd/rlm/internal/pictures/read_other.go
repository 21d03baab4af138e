//go:build !unix

package pictures

import (
	"os"
	"time"
)

// readByte reads nothing. On this system, only environment variables determine the protocol.
func readByte(*os.File, time.Duration) (byte, bool) { return 0, false }
