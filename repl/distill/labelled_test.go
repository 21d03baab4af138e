package distill_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/distill"
)

// adjustedRand returns the adjusted Rand index of two partitions (Hubert and Arabie, 1985): 1
// if they are equal, about 0 if they are independent of each other.
func adjustedRand(a, b []string) float64 {
	pairs := func(n float64) float64 { return n * (n - 1) / 2 }
	both, inA, inB := map[[2]string]float64{}, map[string]float64{}, map[string]float64{}
	for i := range a {
		both[[2]string{a[i], b[i]}]++
		inA[a[i]]++
		inB[b[i]]++
	}
	var together, ofA, ofB float64
	for _, n := range both {
		together += pairs(n)
	}
	for _, n := range inA {
		ofA += pairs(n)
	}
	for _, n := range inB {
		ofB += pairs(n)
	}
	expected := ofA * ofB / pairs(float64(len(a)))
	return (together - expected) / ((ofA+ofB)/2 - expected)
}

func TestAdjustedRand(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{{"aabb", "xxyy", 1}, {"aabb", "xyxy", -0.5}, {"aaabbb", "xxyyzz", 0.24242424242424243}} {
		t.Run(c.a, func(t *testing.T) {
			if got := adjustedRand(strings.Split(c.a, ""), strings.Split(c.b, "")); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("%s and %s: %v, want %v", c.a, c.b, got, c.want)
			}
		})
	}
}

// TestClustersAreTheCauses compares clusters with the known causes of failures, in the wording and
// formats of many programs. The weights of the comparison were chosen with the first file; the
// second contains different causes.
func TestClustersAreTheCauses(t *testing.T) {
	for file, least := range map[string]float64{"labelled.jsonl": 0.85, "heldout.jsonl": 0.5} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			cause := map[string]string{}
			for line := range strings.Lines(string(data)) {
				var row struct{ ID, Cause string }
				if err := json.Unmarshal([]byte(line), &row); err != nil {
					t.Fatal(err)
				}
				cause[row.ID] = row.Cause
			}

			var found, want []string
			for _, c := range distilled(t, parse(t, string(data)), distill.Config{}).Clusters {
				of := map[string]int{}
				for _, id := range c.Failures {
					found, want = append(found, c.Name), append(want, cause[id])
					of[cause[id]]++
				}
				t.Logf("%3d %s: %v", c.Count, c.Name, of)
			}
			index := adjustedRand(found, want)
			t.Logf("the adjusted Rand index of the %d failures of %s is %.3f", len(found), file, index)
			if len(found) != len(cause) || index < least {
				t.Errorf("the adjusted Rand index of %s is %.3f, less than %.2f", file, index, least)
			}
		})
	}
}
