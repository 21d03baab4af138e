package calls

import "github.com/rlmhq/rlm/repl/ledger"

// Window returns the size of a model's context window in tokens, and false if it is unknown.
func (c *Caller) Window(name string) (tokens int64, known bool) {
	m, err := c.resolve(name)
	if err != nil || m.Facts.Window == 0 {
		return 0, false
	}
	return m.Facts.Window, true
}

// mostChars bounds a prompt for a model whose window is unknown, in characters. It is more than any
// model accepts; the server enforces the real limit.
const mostChars = 16 << 20

// MostChars returns the maximum length of a prompt to a model, in characters: four for each
// token of the window.
func (c *Caller) MostChars(name string) int64 {
	if window, known := c.Window(name); known {
		return 4 * window
	}
	return mostChars
}

// UsualChars returns the recommended maximum length of a prompt to a model, in characters: it fills
// three quarters of the window and leaves the rest for the reply. For an unknown window it returns
// 0.
func (c *Caller) UsualChars(name string) int64 {
	window, _ := c.Window(name)
	return 3 * window
}

// roomForReply returns the part of a window that a prompt leaves for the reply, in tokens. Prompt
// and reply share the window, and estimates of a prompt are up to a fifth too low.
func roomForReply(window, prompt int64) int64 {
	return max(minOutput, window-prompt-prompt/5)
}

// IsPriced reports whether the prices of all models of the run are known.
func (c *Caller) IsPriced() bool {
	for _, name := range c.names {
		if m, err := c.resolve(name); err == nil && m.Facts.Price == nil {
			return false
		}
	}
	return true
}

// ReportUnknown emits the warnings about the models of the run.
func (c *Caller) ReportUnknown() {
	for _, text := range ledger.Warnings(c.Models, c.names...) {
		c.Tell(ledger.Event{Kind: ledger.EventWarning, Node: "0", Purpose: "models", Error: text})
	}
}
