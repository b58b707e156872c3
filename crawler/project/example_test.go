package project_test

import (
	"errors"
	"fmt"

	"github.com/decorum-crawler/decorum/crawler/project"
)

// A project file changes only what differs from the defaults.
func ExampleParseFile() {
	file, err := project.ParseFile("books.yaml", []byte(`
agent: {contact: "mailto:bot@example.com"}
seeds: [https://example.com/]
politeness: {delay: 2s}
`))
	if err == nil {
		err = file.Check()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Politeness.Delay, file.Limits.Workers, file.PolitenessPolicy().Delay)
	// Output: 2s 64 2s
}

// An error names the line and column of an invalid value, and what is expected in its place.
func ExampleError() {
	_, err := project.ParseFile("books.yaml", []byte("seeds: [https://example.com/]\nlimits: {workers: many}\n"))
	var e *project.Error
	if errors.As(err, &e) {
		fmt.Println(e.Line, e.Column, e.Field)
	}
	fmt.Println(err)
	fmt.Println(project.DetailedErrorText(err))
	// Output:
	// 2 19 limits.workers
	// books.yaml:2:19: limits.workers: "…" is not a whole number
	// books.yaml:2:19: limits.workers: "many" is not a whole number
	//   2 | limits: {workers: many}
	//     |                   ^
}
