package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// openTunnel connects the guest to an endpoint. A refusal appears in the status line, because
// clients show that line.
func (p *Proxy) openTunnel(w http.ResponseWriter, r *http.Request) {
	var far net.Conn
	err := p.checkTunnel(r.Host)
	if err == nil {
		far, err = p.dial(r.Context(), "tcp", r.Host)
	}
	near, buffered, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil || near == nil {
		if err == nil {
			_ = far.Close() // unused
		}
		return
	}
	defer near.Close()

	if err != nil {
		p.answerFailure(near, err)
		return
	}
	defer far.Close()

	if !p.track(near, far) {
		return
	}
	defer p.untrack(near, far)
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	joinConns(near, buffered.Reader, far)
}

// checkTunnel refuses tunnels to endpoints that the guest must use without a tunnel.
func (p *Proxy) checkTunnel(target string) error {
	switch {
	case strings.HasSuffix(target, ":80"): // the name requested from the server could not be checked
		return p.refuse(target, "ask for http:// addresses without CONNECT")
	case p.credentialsOf(target) != nil:
		return p.refuse(target, "ask for its http:// addresses: the proxy adds the credentials and TLS")
	}
	return nil
}

// answerFailure sends the guest the reason why the tunnel was not opened.
func (p *Proxy) answerFailure(near net.Conn, err error) {
	status := "502 " + unreachable
	if isRefusal(err) {
		status = "403 Forbidden by rlm: " + cleanText(err.Error())
	} else {
		p.options.Log.Info("egress failed", "error", err)
	}
	_, _ = fmt.Fprintf(near,
		"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status)
}

// joinConns copies in both directions until both sides have ended, or one side has failed. ahead
// holds bytes that were already read from the near side.
func joinConns(near net.Conn, ahead *bufio.Reader, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { copyUntilEnd(far, ahead) })
	both.Go(func() { copyUntilEnd(near, far) })
	both.Wait()
}

// copyUntilEnd copies in one direction, and passes on the end of the stream.
func copyUntilEnd(to net.Conn, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close() // the other direction must not wait forever
		return
	}
	if closeWrite(to) != nil {
		_ = to.Close()
	}
}

// track registers connections that Close must close. It reports whether the proxy is still running.
func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.closed {
		return false
	}
	p.running.Add(1)
	for _, c := range conns {
		p.tunnels[c] = struct{}{}
	}
	return true
}

// untrack undoes track.
func (p *Proxy) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, c := range conns {
		delete(p.tunnels, c)
	}
	p.running.Done()
}
