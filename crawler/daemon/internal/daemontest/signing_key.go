package daemontest

import (
	"os"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// CreateSigningKey writes a new key for signing requests to the file at path, and returns the key.
func CreateSigningKey(t *testing.T, path string) *botauth.Key {
	t.Helper()
	key, err := botauth.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PrivatePEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return key
}
