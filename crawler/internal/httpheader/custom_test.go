package httpheader_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

// TestStaticSignature: a signature header that would be the same for every request is refused.
func TestStaticSignature(t *testing.T) {
	for _, name := range []string{"signature", "Signature-Input", "Signature-Agent"} {
		if err := httpheader.CheckCustom(name, "x"); err == nil {
			t.Errorf("%s may be set", name)
		}
	}
}
