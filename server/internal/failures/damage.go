package failures

import (
	"errors"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/dbfile"
)

// Damaged is the error code for stored data that differs from what was written.
const Damaged = "damaged"

// IsDamage reports whether an error is about damaged stored data.
func IsDamage(err error) bool { return errors.Is(err, damage.Err) || dbfile.IsDamage(err) }
