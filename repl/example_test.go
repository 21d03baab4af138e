package repl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/testcache"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

var shared *rlm.Engine

func TestMain(m *testing.M) {
	looptest.Main(m, func() (_ io.Closer, err error) {
		shared, err = rlm.New(rlm.Options{CacheDir: testcache.Dir()})
		return shared, err
	})
}

// A snippet calls a function of the host, and hands over what it makes of the answer.
func ExampleOpenSession() {
	tools, err := repl.NewTools(repl.Tool{
		Name: "price", Signature: "price(item)", Doc: "The price of an item.",
		Call: func(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
			return json.Marshal(map[string]any{"item": args["item"], "euros": 3})
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	session, err := repl.OpenSession(
		ctx, repl.SessionConfig{Open: shared.Opener(router.Policy{}), Tools: tools},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	ran, err := session.Run(
		ctx, repl.Block{Language: tiers.Python, Source: `FINAL(2 * price("tea")["euros"])`},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(ran.Final.Value))
	// Output:
	// 6
}
