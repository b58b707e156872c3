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

// A whatwgCase is a row of testdata/urltestdata.jsonl. That file contains the rows of
// web-platform-tests' url/resources/urltestdata.json which have no base or a base with a scheme of
// the crawl, reduced to the fields below. A row without href is rejected, by the standard or because
// the crawl does not know its scheme.
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

// TestWHATWGData proves that Resolve agrees with the test data of the WHATWG URL standard.
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
