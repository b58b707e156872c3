package datadir

import (
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// TestSmallFilesOfRedis: a password or certificates that are much too long are not read.
func TestSmallFilesOfRedis(t *testing.T) {
	long := testfile.Write(t, "long", strings.Repeat("x", inputfile.MaxSmallBytes+1))
	for _, r := range []project.RedisSettings{{PasswordFile: long}, {TLS: true, CAFile: long}} {
		if _, err := RedisOptions(&r, os.Open); err == nil || !strings.Contains(err.Error(), "is longer than") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
