package httpheader_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

// TestStaticSignature: a signature that would be every request's is refused.
func TestStaticSignature(t *testing.T) {
	for _, name := range []string{"signature", "Signature-Input", "Signature-Agent"} {
		if err := httpheader.CheckCustom(name, "x"); err == nil {
			t.Errorf("%s may be set", name)
		}
	}
}
