package wasm

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rlmhq/rlm/tiers"
)

func TestSmoke(t *testing.T) {
	tier := New(Options{CacheDir: os.TempDir() + "/rlm-test-cache", Log: zerolog.New(os.Stderr)})
	defer tier.Close()
	b := time.Now()
	sb, err := tier.Open(context.Background(), tiers.Config{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("open", time.Since(b))
	for _, src := range []string{"print(1+1)", "1/0", "x=[1,2]\nx", "async def f():\n  return 3\nawait f()", "FINAL({'a':x})", "import sys\nsys.exit(4)", "import time\ntime.sleep(0.1)", "llm_query('x')"} {
		b := time.Now()
		r, err := sb.Run(context.Background(), tiers.Job{Source: src})
		fmt.Printf("%v %+v %v\n", time.Since(b), r, err)
		if r.Exception != nil {
			fmt.Println(r.Exception.Traceback)
		}
	}
	fmt.Println(sb.Close())
}
