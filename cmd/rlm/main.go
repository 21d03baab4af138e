// Command rlm runs code that a language model wrote, over inputs of any size. See `rlm help`.
package main

import (
	"context"
	"os"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	_ "github.com/rlmhq/rlm/cmd/rlm/internal/firstgc" // a short command ends before the first collection
	"github.com/rlmhq/rlm/internal/machine/watchdog"
)

func main() {
	watchdog.EndProcess(cli.ExitLimit, "rlm: a snippet holds a processor, and no limit ends it: the command ends\n")
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
