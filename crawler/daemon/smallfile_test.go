package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestSmallFiles: of a file that cannot be what is meant no more is read than it takes
// to see that.
func TestSmallFiles(t *testing.T) {
	fits, long := testfile.Write(t, "fits", strings.Repeat("x", maxSmallFileBytes)), testfile.Write(t, "long", strings.Repeat("x", maxSmallFileBytes+1))
	if text, err := readSmallFile(os.Open, fits); err != nil || len(text) != maxSmallFileBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := readSmallFile(os.Open, long); err == nil || !strings.Contains(err.Error(), long+" is longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}
