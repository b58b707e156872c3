package bodymem_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// A visit reads a body within its share of the Budget, and keeps only the body's bytes reserved while
// the body is in use.
func Example() {
	budget, err := bodymem.New(bodymem.MinSize)
	if err != nil {
		fmt.Println(err)
		return
	}
	var share bodymem.VisitShare
	budget.OpenShare(&share, "https://example.com/")
	response := strings.NewReader("a body of unknown length")
	body, more, err := share.ReadAll(context.Background(), response, 6, 0, nil)
	fmt.Printf("%q, more: %v, error: %v\n", body, more, err)
	share.ShrinkTo(int64(cap(body)))
	fmt.Println(budget.Usage().Bytes, "bytes while the body is in use")
	share.Close()
	fmt.Println(budget.Usage().Bytes, "bytes afterwards")
	// Output:
	// "a body", more: true, error: <nil>
	// 6 bytes while the body is in use
	// 0 bytes afterwards
}
