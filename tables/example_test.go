package tables_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tables"
)

func Example() {
	engine, err := rlm.New(rlm.Options{SQL: tables.SQL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	orders := rlm.Text("orders.csv", "city,amount\nRome,20\nOslo,5\nRome,30\n")
	session, err := engine.Open(context.Background(), rlm.SessionConfig{Contexts: []rlm.Context{orders}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := session.Run(context.Background(),
		`print(sql("SELECT city, sum(amount) AS total FROM context GROUP BY city ORDER BY city"))`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(result.Stdout)
	// Output:
	// [{'city': 'Oslo', 'total': 5}, {'city': 'Rome', 'total': 50}]
}
