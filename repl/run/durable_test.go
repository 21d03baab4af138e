package run

import (
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
)

// FuzzDecodeCommit checks that the stored data of a turn is either refused or describes a state
// within its bounds.
func FuzzDecodeCommit(f *testing.F) {
	f.Add([]byte(`{"version":1,"question":"why?","messages":{"keep":0,"new":[{"role":"user","content":"x"}]},` +
		`"history":{"keep":0},"memory":{},"spent":{"calls":1,"input_tokens":1,"output_tokens":1,"usd":0},` +
		`"elapsed_ns":1,"namespaces":[{"language":"python","format":"pickle","from":"wasm","snippet":1,"bytes":7}]}`))
	f.Add([]byte(`{"version":1,"messages":{"keep":-1}}`))
	f.Add([]byte(`{"version":1,"namespaces":[{"bytes":9223372036854775807},{"bytes":9223372036854775807}]}`))
	f.Add([]byte(`{"version":2} {}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeCommit(data)
		if err != nil {
			return
		}
		sum := 0
		for _, n := range c.Namespaces {
			sum += n.Bytes
		}
		if sum < 0 || sum > maxState {
			t.Errorf("a state of %d bytes", sum)
		}
		before := make([]llm.Message, 3)
		all, err := c.Messages.follow(before)
		if err == nil && len(all) != c.Messages.Keep+len(c.Messages.New) {
			t.Errorf("%d messages of %+v", len(all), c.Messages)
		}
	})
}
