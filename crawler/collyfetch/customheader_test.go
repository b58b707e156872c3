package collyfetch_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

// TestStaticSignature: a signature that would be every request's is refused.
func TestStaticSignature(t *testing.T) {
	for _, name := range []string{"signature", "Signature-Input", "Signature-Agent"} {
		if err := collyfetch.CheckCustomHeader(name, "x"); err == nil {
			t.Errorf("%s may be set", name)
		}
	}
}
