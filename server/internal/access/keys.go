// Package access controls what a client may do, and how often: by keys with scopes, budgets and
// limits. A key belongs to a tenant, and so does everything that is made with it.
package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Scope is a kind of request that a key allows.
type Scope string

// These are the scopes of keys.
const (
	Read    Scope = "read"    // read runs, files, responses and spending
	Run     Scope = "run"     // start and end runs, upload files, ask models
	Approve Scope = "approve" // decide on calls that wait for a person
	Metrics Scope = "metrics" // read the server's metrics, which cover all tenants
	Admin   Scope = "admin"   // all of these, and the keys of all tenants
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{Read, Run, Approve, Metrics, Admin} }

// Key is a key without its secret.
type Key struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tenant  string    `json:"tenant"`
	Scopes  []Scope   `json:"scopes"`
	Limits  Limits    `json:"limits"`
	Created time.Time `json:"created"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// Local is the caller without a key on the server's own machine.
var Local = Key{ID: "local", Name: "local", Tenant: "local", Scopes: []Scope{Admin}}

// SetScopes sets the scopes by name. Create refuses unknown ones.
func (k *Key) SetScopes(names ...string) {
	k.Scopes = nil
	for _, name := range names {
		k.Scopes = append(k.Scopes, Scope(name))
	}
}

// IsAlone reports whether a tenant is the only one, because the server has no keys.
func IsAlone(tenant string) bool { return tenant == Local.Tenant }

// Share returns how many of the places one tenant may take. A quarter is reserved for other
// tenants.
func Share(tenant string, places int) int {
	if IsAlone(tenant) {
		return places
	}
	return places - places/4
}

// May reports whether the key allows a scope.
func (k *Key) May(s Scope) bool {
	return slices.Contains(k.Scopes, Admin) || slices.Contains(k.Scopes, s)
}

// prefix is the beginning of each key, so that scanners can find leaked secrets.
const prefix = "rlm_"

// IsKey reports whether a string has the form of a key.
func IsKey(text string) bool { return strings.HasPrefix(text, prefix) }

// Keys are the keys of a server. It is safe for concurrent use, even by several processes.
type Keys struct{ db *sql.DB }

// OpenKeys returns the keys in a database.
func OpenKeys(db *sql.DB) *Keys { return &Keys{db} }

var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// check refuses an invalid key.
func (k *Key) check() error {
	for _, name := range []string{k.Name, k.Tenant} {
		if !validName.MatchString(name) {
			return fmt.Errorf("%.80q cannot name a key or a tenant: use up to 64 letters, digits, dots, "+
				"underscores and hyphens, and begin with a letter or a digit", name)
		}
	}
	if k.Tenant == Local.Tenant {
		return fmt.Errorf("tenant %q is for requests without a key: choose another name", Local.Tenant)
	}

	if len(k.Scopes) == 0 {
		return errors.New("a key needs a scope, such as run")
	}
	for _, s := range k.Scopes {
		if !slices.Contains(Scopes(), s) {
			return fmt.Errorf("unknown scope %.40q: give some of %v", s, Scopes())
		}
	}
	return k.Limits.check()
}

// Create makes a key from a name, a tenant, scopes and limits, and returns its secret, which is
// stored nowhere else. If the tenant is empty, the name is used.
func (ks *Keys) Create(ctx context.Context, k Key) (Key, string, error) {
	if k.Tenant == "" {
		k.Tenant = k.Name
	}
	if err := k.check(); err != nil {
		return k, "", problem.Bad("", "%v", err)
	}

	secret := prefix + rand.Text()
	sum := sha256.Sum256([]byte(secret))
	k.ID, k.Created = "key_"+rand.Text()[:12], time.Now().UTC().Truncate(time.Second)
	scopes, err := json.Marshal(k.Scopes)
	if err != nil {
		return k, "", err
	}
	limits, err := json.Marshal(k.Limits)
	if err != nil {
		return k, "", err
	}

	_, err = ks.db.ExecContext(ctx,
		`INSERT INTO keys (id, name, tenant, hash, scopes, limits, created) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		k.ID, k.Name, k.Tenant, sum[:], string(scopes), string(limits), records.Time(k.Created))
	if err != nil && strings.Contains(err.Error(), "UNIQUE") {
		err = problem.New(http.StatusConflict, "name_taken",
			"there is a key %q: revoke it first, or choose another name", k.Name)
	}
	return k, secret, err
}

const selectKeys = `SELECT id, name, tenant, scopes, limits, created, revoked FROM keys `

// List returns all keys in order of creation, including revoked ones.
func (ks *Keys) List(ctx context.Context) ([]Key, error) {
	return records.List(ctx, ks.db, scanKey, selectKeys+`ORDER BY created, id`)
}

func scanKey(row records.Row) (k Key, err error) {
	var scopes, limits string
	var created, revoked int64
	if err := row.Scan(&k.ID, &k.Name, &k.Tenant, &scopes, &limits, &created, &revoked); err != nil {
		return k, err
	}
	k.Created, k.Revoked = records.ReadTime(created), records.ReadTime(revoked)
	return k, errors.Join(json.Unmarshal([]byte(scopes), &k.Scopes), json.Unmarshal([]byte(limits), &k.Limits))
}

// Revoke revokes a key, by its name or its ID.
func (ks *Keys) Revoke(ctx context.Context, name string) error {
	done, err := ks.db.ExecContext(ctx,
		`UPDATE keys SET revoked = ? WHERE revoked = 0 AND (name = ? OR id = ?)`,
		records.Time(time.Now()), name, name)
	if err != nil {
		return err
	}

	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, problem.New(http.StatusNotFound, "not_found",
			"there is no key %.80q in use: rlm keys list shows them", name))
	}
	return nil
}

// Any reports whether there is a key that is not revoked.
func (ks *Keys) Any(ctx context.Context) (found bool, err error) {
	err = ks.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM keys WHERE revoked = 0)`).Scan(&found)
	return found, err
}

// Find returns the key with the given secret. It queries the database each time, so that a
// revocation takes effect immediately.
func (ks *Keys) Find(ctx context.Context, secret string) (Key, error) {
	sum := sha256.Sum256([]byte(secret)) // so timing reveals nothing about the secret

	k, err := scanKey(ks.db.QueryRowContext(ctx, selectKeys+`WHERE hash = ? AND revoked = 0`, sum[:]))
	if !errors.Is(err, sql.ErrNoRows) {
		return k, err
	}
	isLost, err := records.IsLost(ctx, ks.db, hex.EncodeToString(sum[:]))
	if err == nil && isLost {
		err = problem.New(http.StatusUnauthorized, "invalid_key",
			"the key was damaged on the server's disk, and is lost: make a new one with rlm keys create")
	} else if err == nil {
		err = problem.New(http.StatusUnauthorized, "invalid_key",
			"the key is unknown or was revoked: make one with rlm keys create")
	}
	return k, err
}

// ByID returns the key with the given ID, unless it is revoked.
func (ks *Keys) ByID(ctx context.Context, id string) (Key, error) {
	if id == Local.ID {
		return Local, nil
	}
	k, err := scanKey(ks.db.QueryRowContext(ctx, selectKeys+`WHERE id = ? AND revoked = 0`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return k, problem.New(http.StatusForbidden, "invalid_key", "its key was revoked")
	}
	return k, err
}
