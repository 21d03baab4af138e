package inputs_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/inputs"
)

func Example() {
	latin1 := strings.NewReader("Gr\xfc\xdfe aus K\xf6ln")
	in, err := inputs.Read(context.Background(), inputs.Options{}, "letter.txt", latin1, 1<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()

	text := make([]byte, in.Text.Size())
	_, _ = in.Text.ReadAt(text, 0) // the whole text
	fmt.Println(string(text))
	fmt.Println(in.Notes[0])
	// Output:
	// Grüße aus Köln
	// decoded from windows-1252, a guess (if it is wrong, pass --encoding)
}
