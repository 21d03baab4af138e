package postgres_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/objects"
	server "github.com/rlmhq/rlm/internal/testing/postgres"
	"github.com/rlmhq/rlm/store/postgres"
)

func TestMain(m *testing.M) {
	code := m.Run()
	server.End()
	os.Exit(code)
}

// empty is a place without contents.
type empty struct{ objects.Store }

func (empty) String() string                      { return "nowhere" }
func (empty) OpenObjects() (objects.Store, error) { return empty{}, nil }
func (empty) Put(context.Context, io.Reader) (objects.Object, error) {
	return objects.Object{}, objects.ErrNotFound
}

// foreign is a place that another module has made.
type foreign struct{}

func (foreign) String() string { return "elsewhere" }

func list(t *testing.T, s rlm.Store) error {
	t.Helper()
	engine, err := rlm.New(rlm.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	_, err = engine.Runs(t.Context(), rlm.RunFilter{})
	return err
}

func TestAnEngineUsesADatabase(t *testing.T) {
	if err := list(t, postgres.Database(server.Shared(t).URL(), postgres.Options{Objects: empty{}})); err != nil {
		t.Error(err)
	}
}

func TestAPlaceForContentsIsRequired(t *testing.T) {
	for want, o := range map[string]postgres.Options{
		"needs a place for large contents": {},
		"elsewhere: pass a place":          {Objects: foreign{}},
	} {
		err := list(t, postgres.Database("postgres://localhost", o))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAPasswordIsNotShown(t *testing.T) {
	for _, address := range []string{
		"postgres://u:secret@h/d", "postgres://u@h/d?password=secret", "host=h password=secret",
		"postgres://u:secret@h:x/d",
	} {
		if got := postgres.Database(address, postgres.Options{}).String(); strings.Contains(got, "secret") {
			t.Errorf("%q shows the password", got)
		}
	}
}
