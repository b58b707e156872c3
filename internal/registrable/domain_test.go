package registrable_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/internal/registrable"
)

func TestDomain(t *testing.T) {
	for host, want := range map[string]string{
		"example.com":           "example.com",
		"a.b.example.co.uk":     "example.co.uk",
		"alice.github.io":       "alice.github.io", // a private suffix: a separate site
		"www.alice.github.io":   "alice.github.io",
		"github.io":             "github.io",
		"com":                   "com",
		"192.0.2.1":             "192.0.2.1",
		"[2001:db8::1]":         "[2001:db8::1]",
		"localhost":             "localhost",
		"xn--bcher-kva.example": "xn--bcher-kva.example",
	} {
		if got := registrable.Domain(host); got != want {
			t.Errorf("domain of %s: %s, want %s", host, got, want)
		}
	}
}
