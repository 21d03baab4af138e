package server

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Key describes the rights of a key: its tenant, scopes and limits.
type Key = access.Key

// CreateKey makes a key and returns it with its secret, which is not stored anywhere. Without a
// tenant, the key's name is its tenant. A running server accepts the key immediately.
func (f Folder) CreateKey(ctx context.Context, key Key) (made Key, secret string, err error) {
	err = f.withKeys(ctx, func(keys *access.Keys, audit *access.Audit) error {
		if made, secret, err = keys.Create(ctx, key); err != nil {
			return err
		}
		return audit.Add(access.Entry{
			Action: "keys create", Object: made.ID, Key: made.Name, Tenant: made.Tenant,
		})
	})
	return made, secret, err
}

// Keys returns all keys, including revoked ones.
func (f Folder) Keys(ctx context.Context) (all []Key, err error) {
	err = f.withKeys(ctx, func(keys *access.Keys, _ *access.Audit) error {
		all, err = keys.List(ctx)
		return err
	})
	return all, err
}

// RevokeKey revokes a key, by its name or its ID. A running server refuses the key immediately.
func (f Folder) RevokeKey(ctx context.Context, name string) error {
	return f.withKeys(ctx, func(keys *access.Keys, audit *access.Audit) error {
		if err := keys.Revoke(ctx, name); err != nil {
			return err
		}
		return audit.Add(access.Entry{Action: "keys revoke", Object: name})
	})
}

// withKeys calls use with the keys and the audit log, which a server may use at the same time.
func (f Folder) withKeys(
	ctx context.Context, use func(*access.Keys, *access.Audit) error,
) (err error) {
	db, err := records.Open(ctx, string(f))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	audit, err := access.OpenAudit(string(f))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Close()) }()
	return use(access.OpenKeys(db), audit)
}
