// Command embed is the smallest program with a sandbox. It links only tier wasm.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/rlmhq/rlm"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()

	session, err := engine.Open(ctx, rlm.SessionConfig{})
	if err != nil {
		return err
	}
	result, err := session.Run(ctx, "1 + 1")
	if err != nil {
		return err
	}
	fmt.Println(result.Echo)
	return nil
}
