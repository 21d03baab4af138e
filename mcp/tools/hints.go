package tools

// The servers' hints about their tools. They prove nothing: a server can write anything.
const (
	readOnly    = "read-only"
	destructive = "destructive"
	idempotent  = "idempotent"
	openWorld   = "open-world"
)

// AllHints returns all known hints.
func AllHints() []string { return []string{readOnly, destructive, idempotent, openWorld} }

// Hints returns the hints about a host function, as its server gave them at the start. Without
// hints, and for other functions, the protocol assumes the worst.
func (s *Servers) Hints(function string) []string {
	if s != nil {
		for _, t := range s.list() {
			if t.function() == function {
				return t.hints()
			}
		}
	}
	return []string{destructive, openWorld}
}

func (t *tool) hints() (all []string) {
	if t.origin == nil {
		return []string{readOnly, openWorld} // it reads resources or prompts
	}
	said := t.origin.Annotations
	if said == nil {
		return []string{destructive, openWorld}
	}

	if said.ReadOnlyHint {
		all = append(all, readOnly)
	} else if said.DestructiveHint == nil || *said.DestructiveHint {
		all = append(all, destructive)
	}
	if said.IdempotentHint {
		all = append(all, idempotent)
	}
	if said.OpenWorldHint == nil || *said.OpenWorldHint {
		all = append(all, openWorld)
	}
	return all
}
