package decorum_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// A whatwgCase of the WHATWG's test data, testdata/urltestdata.jsonl: the rows of
// web-platform-tests' url/resources/urltestdata.json whose base is none or of a
// scheme of the crawl, reduced to what the crawl asks. A row without href is
// refused, by the standard or because its scheme is not one of the crawl.
type whatwgCase struct{ Input, Base, Href string }

func readWHATWGCases(t *testing.T) (rows []whatwgCase) {
	t.Helper()
	data, err := os.ReadFile("testdata/urltestdata.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r whatwgCase
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// TestWHATWGData holds the words against the standard's own test data.
func TestWHATWGData(t *testing.T) {
	rows := readWHATWGCases(t)
	if len(rows) < 200 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, r := range rows {
		base, err := decorum.ParseURL(r.Base)
		if r.Base != "" && err != nil {
			t.Errorf("base %q: %v", r.Base, err)
		}
		got, err := base.Resolve(r.Input)
		want, _, _ := strings.Cut(r.Href, "#")
		if want = normalizeHref(want); got.String() != want {
			t.Errorf("%q on %q:\n got %q, %v\nwant %q", r.Input, r.Base, got, err, want)
		}
		checkInvariants(t, base, r.Input)
	}
}
