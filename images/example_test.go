package images_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/images"
)

// A recipe lists the contents of an image before any image has been built.
func ExampleFind() {
	recipe, err := images.Find(images.Python)
	if err != nil {
		fmt.Println(err)
		return
	}

	name, tag, _ := strings.Cut(recipe.Name, ":")
	fmt.Println(name, strings.HasPrefix(recipe.Hash, tag))
	fmt.Println("numpy:", slices.Contains(recipe.Modules, "numpy"))
	fmt.Println("torch:", slices.Contains(recipe.Modules, "torch"))

	_, err = images.Find("ruby")
	fmt.Println(err)
	// Output:
	// rlm/python true
	// numpy: true
	// torch: false
	// unknown image "ruby": use one of python, go
}
