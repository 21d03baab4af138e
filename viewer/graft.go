package viewer

import "slices"

// endTurns ends the turns of all loops at the last event, because no more of their events follow.
func (b *Builder) endTurns() {
	for _, l := range b.loops {
		b.endTurn(l, b.last)
	}
}

// graft adds the nodes of another tree with the same root. If the run has not ended, the tree's
// steps without an end, their ancestors, and the last turn get its status.
func (b *Builder) graft(tree *Builder, status string) {
	isOpen := slices.Contains([]string{StatusRunning, StatusInterrupted, StatusParked}, status)
	hasRoom := b.bytes+tree.bytes <= maxTexts
	b.left += tree.left
	b.short += tree.short
	if !hasRoom {
		b.short++
	}

	added := &tree.run
	if len(b.run.Nodes) == 0 {
		b.run.Nodes, b.run.Texts = append(b.run.Nodes, added.Nodes[0]), append(b.run.Texts, added.Texts[0])
	}

	numbers, turn := make([]int, len(added.Nodes)), 0 // the numbers in the new tree
	for i := 1; i < len(added.Nodes); i++ {
		if len(b.run.Nodes) >= maxNodes {
			b.left += len(added.Nodes) - i
			break
		}

		n, texts := added.Nodes[i], added.Texts[i]
		if !hasRoom {
			n.Texts, texts = 0, nil
		}
		n.Parent, numbers[i] = numbers[n.Parent], len(b.run.Nodes)
		b.run.Nodes, b.run.Texts = append(b.run.Nodes, n), append(b.run.Texts, texts)

		if n.Kind == KindTurn && n.Parent == 0 {
			turn = numbers[i]
		}
		if isOpen && n.Status == statusOpen {
			b.markOpen(numbers[i], status)
		}
	}
	if isOpen {
		b.markOpen(turn, status)
		b.startOpen(turn)
	}
}

// startOpen sets the start of the last turn to the end of the nodes before it, because the turn's
// steps have no times.
func (b *Builder) startOpen(turn int) {
	if turn == 0 {
		return
	}
	start := 0.0 // the first turn begins with the run
	if !b.last.IsZero() {
		start = b.at(b.last)
	}
	if n := &b.run.Nodes[turn]; n.Start < 0 {
		n.Start = start
	}
	if n := &b.run.Nodes[0]; n.Start < 0 {
		n.Start = 0
	}
}

// markOpen gives a status to a node and its ancestors.
func (b *Builder) markOpen(node int, status string) {
	for ; node > 0 && b.run.Nodes[node].Status != status; node = b.run.Nodes[node].Parent {
		b.run.Nodes[node].Status = status
	}
}
