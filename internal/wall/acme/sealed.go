package acme

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"

	"golang.org/x/crypto/acme/autocert"
)

// sealed is a cache whose entries end with their SHA-256. It treats a damaged entry as missing, so
// that the authority issues a new certificate, because a damaged certificate may look valid but
// fail at the clients.
type sealed struct {
	autocert.Cache
	log *slog.Logger
}

// sealBegin starts the last line of an entry. PEM ignores that line.
const sealBegin = "sha256 "

// Get implements [autocert.Cache].
func (s sealed) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Cache.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	content, isWhole := unseal(data)
	if !isWhole {
		s.log.Error("a kept certificate or key is damaged: the authority is asked for a new one", "name", name)
		return nil, autocert.ErrCacheMiss
	}
	return content, nil
}

// Put implements [autocert.Cache].
func (s sealed) Put(ctx context.Context, name string, data []byte) error {
	return s.Cache.Put(ctx, name, seal(data))
}

func seal(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(bytes.Clone(data), sealBegin+hex.EncodeToString(sum[:])+"\n"...)
}

// unseal returns the content of an entry, and reports whether it is intact. Entries of an earlier
// version have no seal.
func unseal(data []byte) (content []byte, isWhole bool) {
	at := bytes.LastIndex(data, []byte(sealBegin))
	if at < 0 {
		lines := bytes.Split(bytes.TrimSpace(data), []byte{'\n'})
		last := lines[len(lines)-1]
		return data, bytes.HasPrefix(last, []byte("-----END ")) && bytes.HasSuffix(last, []byte("-----"))
	}
	return data[:at], bytes.Equal(seal(data[:at]), data)
}
