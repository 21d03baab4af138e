package jsonrpc

// smallAnswer is the maximum size of a response that is not counted, in bytes. The bound on
// requests also bounds the number of such responses.
const smallAnswer = 4 << 10

// hold counts bytes that this end must keep for the peer, and reports whether they are within the
// bounds. The caller holds mu.
func (c *Conn) hold(n int) bool {
	if c.held+n > c.maxHeld || c.shared != nil && c.shared(n) != nil {
		return false
	}
	c.held += n
	return true
}

// release is the reverse of hold. The caller holds mu.
func (c *Conn) release(n int) {
	c.held -= n
	if c.shared != nil {
		_ = c.shared(-n) // never refused
	}
}

// answer writes the response to a request of a given size. The request is counted until it is the
// response's turn to be written, so a peer that reads nothing cannot make this end keep an
// unlimited number of responses.
func (c *Conn) answer(name string, response *message, size int) error {
	line, err := c.encode(response)
	held := len(line)
	if held <= smallAnswer {
		held = 0
	}
	c.mu.Lock()
	c.release(size)
	if held > 0 && !c.hold(held) {
		held = 0
		refused := NewError(CodeServer, kind{"busy"}, "too many answers wait to be read: read some first")
		line, err = c.encode(&message{ID: response.ID, Error: refused})
	}
	c.mu.Unlock()

	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	delete(c.requests, name)
	c.release(held)
	c.mu.Unlock()
	if err == nil {
		_, err = c.out.Write(line)
	}
	return err
}

// maxWarnings bounds the lines that a peer can add to the log.
const maxWarnings = 20

// warn logs a problem with a message that has no response.
func (c *Conn) warn(text string, args ...any) {
	if c.warnings++; c.warnings <= maxWarnings { // only the reader of messages warns
		c.log.Warn(text, args...)
	}
}
