package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// defaultConnections is the default bound on connections.
const defaultConnections = 4096

// requestsOf returns the bound on active requests for a bound on connections. The remaining
// connections wait, and can be closed to make room for new ones.
func requestsOf(connections int) int { return max(connections-connections/4, 1) }

// crowd is a listener that bounds its connections. When all places are taken, it closes the
// connection that has waited longest without an active request, although a request may be on the
// way. So slow or idle clients do not keep others out.
type crowd struct {
	net.Listener
	most int

	mu      sync.Mutex
	all     int
	waiting *list.List // guests without a request; the one that has waited longest is first
}

func newCrowd(l net.Listener, most int) *crowd {
	return &crowd{Listener: l, most: most, waiting: list.New()}
}

// guest is a connection of a crowd.
type guest struct {
	net.Conn
	crowd *crowd

	// The following fields are guarded by crowd.mu.
	requests int
	place    *list.Element // among the waiting ones, nil if not waiting
	isGone   bool
}

// Accept implements [net.Listener].
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := c.enter(conn); g != nil {
			return g, nil
		}
		_ = conn.Close() // all places have active requests, so the client must retry
	}
}

// enter gives a connection a place, or returns nil.
func (c *crowd) enter(conn net.Conn) *guest {
	g := &guest{Conn: conn, crowd: c}
	c.mu.Lock()
	var oldest *guest
	if first := c.waiting.Front(); c.all >= c.most && first != nil {
		oldest, _ = first.Value.(*guest)
		c.forget(oldest)
	}
	isFull := c.all >= c.most
	if !isFull {
		c.all++
		g.place = c.waiting.PushBack(g)
	}
	c.mu.Unlock()

	if oldest != nil {
		_ = oldest.Conn.Close() // its request, if any arrives, fails
	}
	if isFull {
		return nil
	}
	return g
}

// forget removes a connection from the crowd. The caller holds mu.
func (c *crowd) forget(g *guest) {
	if g.isGone {
		return
	}
	g.isGone = true
	c.all--
	if g.place != nil {
		c.waiting.Remove(g.place)
		g.place = nil
	}
}

// Close implements [net.Conn].
func (g *guest) Close() error {
	g.crowd.mu.Lock()
	g.crowd.forget(g)
	g.crowd.mu.Unlock()
	return g.Conn.Close()
}

// CloseWrite allows package net/http to finish an answer before it closes the connection.
func (g *guest) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// guestKey is the context key of a request's connection.
type guestKey struct{}

// withGuest adds a connection to the context of its requests.
func withGuest(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, guestKey{}, conn)
}

// keepBusy protects the connections of active requests from being closed.
func keepBusy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
			g.begin()
			defer g.end()
		}
		next.ServeHTTP(w, r)
	})
}

func (g *guest) begin() {
	c := g.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	g.requests++
	if g.place != nil {
		c.waiting.Remove(g.place)
		g.place = nil
	}
}

func (g *guest) end() {
	c := g.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.requests--; g.requests == 0 && !g.isGone {
		g.place = c.waiting.PushBack(g)
	}
}
