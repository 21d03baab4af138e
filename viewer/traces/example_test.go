package traces_test

import (
	"fmt"
	"log"

	"github.com/rlmhq/rlm/viewer/traces"
)

func Example() {
	record, err := traces.Open("../testdata/record")
	if err != nil {
		log.Fatal(err)
	}
	defer record.Close()

	fmt.Println(len(record.Root.Turns), "turns")
	// Output: 3 turns
}
