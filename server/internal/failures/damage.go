package failures

import (
	"errors"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/dbfile"
)

// Damaged is the code of an error about something that the server has kept, and that is not what was
// written.
const Damaged = "damaged"

// IsDamage reports whether an error says that what was kept is damaged.
func IsDamage(err error) bool { return errors.Is(err, damage.Err) || dbfile.IsDamage(err) }
