//go:build unix

package toolprogram_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/repl/toolprogram"
)

func Example() {
	program, err := toolprogram.Start(context.Background(), "sh testdata/shop.sh")
	if err != nil {
		log.Fatal(err)
	}
	defer program.Close()

	for _, tool := range program.Tools() {
		fmt.Println(tool.Name + ": " + tool.Doc)
	}
	// Output: price: the price of a thing
}
