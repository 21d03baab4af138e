package mcptools

import (
	"testing"

	"github.com/rlmhq/rlm/repl"
)

// BenchmarkThousandTools measures what a thousand tools cost a command, without the server.
func BenchmarkThousandTools(b *testing.B) {
	servers, err := Start(b.Context(), []string{file(b, "many")}, 1, "1")
	if err != nil {
		b.Fatal(err)
	}
	defer servers.Close()
	for b.Loop() {
		taken := map[string]bool{}
		one := *servers.all[0]
		one.tools = nil
		for found, err := range one.session.Tools(b.Context(), nil) {
			if err != nil {
				b.Fatal(err)
			}
			one.tools = append(one.tools, newTool(&one, found, taken))
		}
		all := &Servers{all: []*server{&one}, most: 1}
		if _, err := repl.NewTools(all.Tools()...); err != nil {
			b.Fatal(err)
		}
		if len(all.Python()) == 0 {
			b.Fatal("there is no Python")
		}
	}
}
