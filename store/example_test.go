package store_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/store"
)

func ExampleFolder() {
	folder, err := os.MkdirTemp("", "runs-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)

	engine, err := rlm.New(rlm.Options{Store: store.Folder(folder)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	runs, err := engine.Runs(context.Background(), rlm.RunFilter{})
	fmt.Println(len(runs), err)
	// Output:
	// 0 <nil>
}
