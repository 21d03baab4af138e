package viewer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rlmhq/rlm/viewer"
)

func Example() {
	found, err := viewer.FindTraces("testdata/record")
	if err != nil {
		log.Fatal(err)
	}
	items, err := found.List(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for i := range items {
		run, err := found.Open(context.Background(), items[i].ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(run.Title)
	}
	// Output: which place?
}
