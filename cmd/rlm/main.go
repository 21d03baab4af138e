// Command rlm runs code that a language model wrote over inputs of any size. See
// `rlm help`.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
