package replay_test

import (
	"fmt"

	"github.com/decorum-crawler/decorum/crawler/replay"
)

// A difference names the record of the ledger and the URL that it is about.
func ExampleDifference() {
	fmt.Println(replay.Difference{
		RecordNumber: 12,
		URL:          "http://shop.example/private/",
		Description:  "it was requested, and would not be requested now",
	})
	// Output:
	// record 12, http://shop.example/private/: it was requested, and would not be requested now
}
