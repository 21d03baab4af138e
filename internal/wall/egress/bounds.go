package egress

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
)

// spend deducts bytes from the session's allowance.
func (p *Proxy) spend(n int, target endpoints.Endpoint) error {
	p.mu.Lock()
	before := p.left
	p.left -= int64(n)
	over := p.left < 0
	p.mu.Unlock()

	switch {
	case !over:
		return nil
	case before < 0: // already recorded
		return &refusal{target.String(), "the session's byte limit is used up"}
	}
	return p.refuse(target.String(), "the session's limit of %d bytes is used up",
		p.options.MaxBytes)
}

// closeWrite closes one direction of a connection.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// countedConn is a connection to an endpoint. It counts the bytes, and closes itself when it is
// idle for too long.
type countedConn struct {
	net.Conn
	proxy  *Proxy
	target endpoints.Endpoint
}

// Read reads from the endpoint.
func (c *countedConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(idleTime)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if spent := c.proxy.spend(n, c.target); spent != nil {
		return 0, spent
	}
	return n, err
}

// Write writes to the endpoint.
func (c *countedConn) Write(b []byte) (int, error) {
	if err := c.proxy.spend(len(b), c.target); err != nil {
		return 0, err
	}
	if err := c.SetWriteDeadline(time.Now().Add(idleTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// CloseWrite closes one direction.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

// boundedListener bounds the open connections of the sandbox's listener. A guest that opens more
// must wait.
type boundedListener struct {
	net.Listener
	proxy *Proxy
}

// Accept waits for a free slot, then for a connection.
func (b *boundedListener) Accept() (net.Conn, error) {
	select {
	case b.proxy.slots <- struct{}{}:
	case <-b.proxy.done:
		return nil, net.ErrClosed
	}

	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.proxy.slots
		return nil, err
	}
	return &slottedConn{Conn: conn, free: sync.OnceFunc(func() { <-b.proxy.slots })}, nil
}

// slottedConn is a connection that holds a slot until it is closed.
type slottedConn struct {
	net.Conn
	free func()
}

// Close closes the connection and frees its slot.
func (s *slottedConn) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// CloseWrite closes one direction.
func (s *slottedConn) CloseWrite() error { return closeWrite(s.Conn) }
