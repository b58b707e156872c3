package crawler

import (
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// What was just asked about an origin is in mind while its page is visited, however
// many others there are.
func TestReservationsAreBounded(t *testing.T) {
	var rs reservations
	of := func(i int) decorum.Origin {
		u, err := decorum.ParseURL(fmt.Sprintf("http://h%d.test/", i))
		if err != nil {
			t.Fatal(err)
		}
		return u.Origin()
	}
	for i := range 4 * rememberedFiles {
		rs.keep(of(i), &Reservation{})
		for _, before := range []int{i, i - 1, i - rememberedFiles} {
			if before >= 0 && rs.find(of(before)) == nil {
				t.Fatalf("%d is forgotten when %d comes", before, i)
			}
		}
		if n := len(rs.known.now) + len(rs.known.past); n > 2*rememberedFiles {
			t.Fatalf("%d are held", n)
		}
	}
}
