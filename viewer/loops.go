package viewer

import "github.com/rlmhq/rlm/repl/ledger"

func (b *Builder) beginLoop(l *loop, e *ledger.Event) {
	n := &b.run.Nodes[l.node]
	n.Status = StatusRunning
	if l.node == 0 {
		b.run.Title, b.run.Status = shorten(e.Text), StatusRunning
	}
	if l.begun {
		b.interrupt(l)
		return
	}

	l.begun = true
	n.Title, n.Model, n.Agent, n.Start = shorten(e.Text), shorten(e.Model), shorten(e.Agent), b.at(e.Time)
	b.addText(l.node, "question", FormText, e.Text)
}

// interrupt ends the unfinished nodes of an interrupted run, which a later process continues.
func (b *Builder) interrupt(l *loop) {
	for i := range b.run.Nodes {
		if n := &b.run.Nodes[i]; i != l.node && n.Status == StatusRunning {
			n.Status = StatusInterrupted
		}
	}
	l.turn, l.snippet, l.open = -1, -1, nil
}

func (b *Builder) endLoop(l *loop, e *ledger.Event) {
	b.endTurn(l, e.Time)
	n := &b.run.Nodes[l.node]
	n.Start, n.Elapsed = b.span(e)
	n.Status = shorten(e.Status)
	b.addText(l.node, "answer", FormText, e.Text)
	b.addText(l.node, "reason", FormText, e.Error)
	if l.node == 0 {
		b.run.Status = n.Status
	}
}
