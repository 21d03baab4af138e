package tools

// These are the servers' hints about their tools. They are not reliable, because a server can send
// any hint.
const (
	readOnly    = "read-only"
	destructive = "destructive"
	idempotent  = "idempotent"
	openWorld   = "open-world"
)

// AllHints returns all known hints.
func AllHints() []string { return []string{readOnly, destructive, idempotent, openWorld} }

// Hints returns the hints about a host function that its server gave at the start. For a missing
// hint, and for other functions, it returns the worst case, as the protocol requires.
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
		return []string{readOnly, openWorld} // the function reads resources or prompts
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
