package daemon

import (
	"os"
	"strings"
	"testing"
)

// TestSmallFiles: of a file that cannot be what is meant no more is read than it takes
// to see that.
func TestSmallFiles(t *testing.T) {
	fits, long := writeTempFile(t, "fits", strings.Repeat("x", maxSmallFileBytes)), writeTempFile(t, "long", strings.Repeat("x", maxSmallFileBytes+1))
	if text, err := readSmallFile(os.Open, fits); err != nil || len(text) != maxSmallFileBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	runCommand(t, "top", "--token-file", long).want(t, ExitUsage, long+" is longer than 1048576 bytes")
	for _, r := range []RedisSettings{{PasswordFile: long}, {TLS: true, CAFile: long}} {
		if _, err := redisOptions(&r, os.Open); err == nil || !strings.Contains(err.Error(), "is longer than") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
