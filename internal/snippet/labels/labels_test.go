package labels

import (
	"log/slog"
	"strings"
	"testing"
)

func TestALogNamesTheLabels(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))

	AddTo(log, map[string]string{"tenant": "acme", "request": "r-1"}).Info("hello")
	if want := "labels.request=r-1 labels.tenant=acme"; !strings.Contains(out.String(), want) {
		t.Errorf("the log has no %s: %s", want, &out)
	}

	if AddTo(log, nil) != log {
		t.Error("no labels make another log")
	}
}

func TestCheck(t *testing.T) {
	for name, row := range map[string]struct {
		labels map[string]string
		isFine bool
	}{
		"none":         {nil, true},
		"two":          {map[string]string{"tenant": "Acme, Inc.", "request.id": "r-1"}, true},
		"a capital":    {map[string]string{"Tenant": "c"}, false},
		"a line":       {map[string]string{"tenant": "a\nb"}, false},
		"a long value": {map[string]string{"tenant": strings.Repeat("x", maxLabelValue+1)}, false},
	} {
		if err := Check(row.labels); (err == nil) != row.isFine {
			t.Errorf("%s: %v", name, err)
		}
	}
}
