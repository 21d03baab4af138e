package tools_test

import (
	"fmt"
	"log"
	"os"

	"github.com/rlmhq/rlm/mcp/tools"
)

func Example() {
	if err := os.Setenv("SHOP_TOKEN", "Bearer 42"); err != nil {
		log.Fatal(err)
	}
	headers, err := tools.Headers([]string{"api.shop.example=Authorization:SHOP_TOKEN"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(headers["api.shop.example:443"].Get("Authorization"))
	// Output: Bearer 42
}
