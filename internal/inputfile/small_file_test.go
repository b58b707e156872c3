package inputfile

import (
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestSmallFiles: a file that is too long is refused without reading it to its end.
func TestSmallFiles(t *testing.T) {
	fits, long := testfile.Write(t, "fits", strings.Repeat("x", MaxSmallBytes)),
		testfile.Write(t, "long", strings.Repeat("x", MaxSmallBytes+1))
	if text, err := ReadSmall(os.Open, fits); err != nil || len(text) != MaxSmallBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := ReadSmall(os.Open, long); err == nil ||
		!strings.Contains(err.Error(), long+" is longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}
