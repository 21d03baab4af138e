package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	server "github.com/rlmhq/rlm/internal/testing/postgres"
	"github.com/rlmhq/rlm/store/postgres"
)

func TestMain(m *testing.M) {
	code := m.Run()
	server.End()
	os.Exit(code)
}

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
	if err := list(t, postgres.Database(server.Shared(t).URL(), postgres.Options{Objects: t.TempDir()})); err != nil {
		t.Error(err)
	}
}

func TestAPlaceForContentsIsRequired(t *testing.T) {
	for want, o := range map[string]postgres.Options{
		"name the place of large contents": {},
		"s3://BUCKET/PREFIX or a folder":   {Objects: "gs://bucket"},
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
