package datadir

import (
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// RedisOptions does not read a file of a password or of certificates that is much too long.
func TestSmallFilesOfRedis(t *testing.T) {
	long := testfile.Write(t, "long", strings.Repeat("x", inputfile.MaxSmallBytes+1))
	for _, r := range []project.RedisSettings{{PasswordFile: long}, {TLS: true, CAFile: long}} {
		if _, err := RedisOptions(&r, os.Open); err == nil || !strings.Contains(err.Error(), "is longer than") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
