package connect

import "unicode/utf8"

// output sends a snippet's output. It holds an incomplete character back until the rest arrives.
type output struct {
	server  *server
	session string
	stream  string
	held    []byte
}

type outputParams struct {
	Session string `json:"session"`
	Stream  string `json:"stream" jsonschema:"stdout, stderr or echo, the value of the last expression"`
	Text    string `json:"text"`
}

func (s *server) newOutput(e *entry, stream string) *output {
	return &output{server: s, session: e.id, stream: stream}
}

// Write implements io.Writer. It hides errors, so a failed write does not affect the snippet.
func (o *output) Write(data []byte) (int, error) {
	text := append(o.held, data...) //nolint:gocritic // held is replaced below
	whole := len(text) - countCut(text)
	o.held = append([]byte(nil), text[whole:]...)

	return len(data), o.send(text[:whole])
}

// WriteEcho implements tiers.EchoWriter.
func (o *output) WriteEcho(text []byte) {
	o.flush()
	echo := &output{server: o.server, session: o.session, stream: "echo"}
	_, _ = echo.Write(text)
	echo.flush()
}

// flush sends the remaining bytes, which never formed a complete character.
func (o *output) flush() {
	_ = o.send(o.held) // the connection notices if the client has gone away
	o.held = nil
}

func (o *output) send(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	return o.server.conn.Notify("session/output", outputParams{o.session, o.stream, string(text)})
}

// countCut returns the number of bytes of an incomplete character at the end of text.
func countCut(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
