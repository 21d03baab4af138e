package stored

import (
	"bufio"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/viewer/traces"
)

func FuzzReadTrace(f *testing.F) {
	f.Add(
		`{"type":"metadata","root_model":"a/b"}` + "\n" +
			`{"type":"iteration","iteration":1,"response":"x","code_blocks":[{"code":"y",` +
			`"result":{"stdout":"z","rlm_calls":[{"prompt":"p"}]}}],"final_answer":"a","iteration_time":1e300}` + "\n",
	)
	f.Add(
		`{"kind":"run_started","node":"0","text":"q"}` + "\n" + `{"kind":"snippet","node":"0","tier":"wasm"}` + "\n{",
	)
	f.Add(
		`{"kind":"loop_started","node":"0","text":"\u001b"}` + "\n" +
			`{"kind":"verdict","node":"0","turn":-1,"status":"\u0007","text":"\u009b"}` + "\n" +
			`{"kind":"reply","node":"0","turn":9,"purpose":"critique","model":"\u001b","elapsed_ns":-5,` +
			`"error":"\r"}` + "\n" +
			`{"kind":"loop_ended","node":"0","status":"\u0000"}`,
	)
	f.Fuzz(func(t *testing.T, content string) {
		root, err := traces.Read(strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		run := &recordedRun{root: root, nodes: map[string]*recordedNode{}}
		_, err = traces.ReadEvents(&traces.Lines{}, strings.NewReader(content), run.keepEvent)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		view := traceView{w: bufio.NewWriter(&out)}
		view.showRun(run)
		if err := view.w.Flush(); err != nil {
			t.Fatal(err)
		}
		i := strings.IndexFunc(out.String(), func(r rune) bool {
			return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0)
		})
		if i >= 0 {
			t.Errorf("a control character is shown: %q", out.String()[i:])
		}
	})
}
