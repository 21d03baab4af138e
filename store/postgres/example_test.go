package postgres_test

import (
	"fmt"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/store/postgres"
)

func ExampleDatabase() {
	store := postgres.Database("postgres://rlm:secret@db.example/runs?sslmode=verify-full", postgres.Options{
		Objects: "s3://bucket/runs",
	})
	engine, err := rlm.New(rlm.Options{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	fmt.Println(store)
	// Output:
	// postgres://rlm:xxxxx@db.example/runs
}
