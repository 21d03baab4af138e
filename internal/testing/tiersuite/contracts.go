package tiersuite

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

const contractDir = "testdata/contract"

// updateContracts is a flag for writing the output of a tier. A plain CPython does not have the
// runtime's models, so people review this output.
var updateContracts = flag.Bool("update-contracts", false,
	"write the golden files of the models that the runtime brings")

// testContracts runs scripts that use the types that schema= accepts and the look-alike of
// pydantic, and moves the session between their snippets.
func (s *suite) testContracts(t *testing.T) {
	skip.UnderRace(t)
	if !s.info.Modules["rlm_models"] {
		t.Skipf("tier %s has no runtime for Python's types", s.info.Name)
	}
	t.Run("pydantic", func(t *testing.T) { // the real one, or the look-alike
		s.open(t, emptyConfig()).mustPrint(t, `from pydantic import BaseModel, Field, ValidationError
class F(BaseModel):
    n: int = Field(ge=1)
`+
			`print(F(n='3'), F.model_validate({'n': 4}).model_dump())
try: F(n=0)
except ValidationError as e: print(e.error_count())`, "n=3 {'n': 4}\n1\n")
	})

	cfg := tiers.Config{Limits: tiers.Limits{Output: 10 << 20}}
	for _, name := range listCases(t, contractDir) {
		t.Run(name, func(t *testing.T) {
			if s.opt.PythonMinor != 0 && s.opt.PythonMinor < 13 {
				t.Skip("it needs CPython 3.13 for its messages")
			}
			box, stdout := s.open(t, cfg), ""
			for i, snippet := range strings.Split(readFixture(t, contractDir+"/"+name+".py"), moveMark) {
				if i > 0 {
					next := s.open(t, cfg)
					if report := moveTo(t, box, next); len(report.Left) > 0 {
						t.Errorf("left behind: %+v", report.Left)
					}
					box = next
				}

				stdout += box.mustRun(t, snippet).Stdout
			}

			if *updateContracts {
				if err := os.WriteFile(filepath.Join("../tiertest", contractDir, name+".stdout"),
					[]byte(stdout), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}

			compare(t, "stdout", stdout, readFixture(t, contractDir+"/"+name+".stdout"))
		})
	}
}
