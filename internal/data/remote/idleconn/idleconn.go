// Package idleconn ends connections to servers that have become silent.
package idleconn

import (
	"net"
	"time"
)

// Limit returns a connection whose calls fail once it has moved no byte for some time. What is
// written also renews the time for the answer, because a server is silent while it receives.
func Limit(conn net.Conn, idle time.Duration) net.Conn { return &limited{conn, idle} }

// limited is a connection with a limit. It embeds only the interface: with more methods, a copy to
// a connection would bypass Write.
type limited struct {
	net.Conn
	idle time.Duration
}

// Read implements net.Conn.
func (c *limited) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements net.Conn.
func (c *limited) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
