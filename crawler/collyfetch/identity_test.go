package collyfetch_test

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

func TestIsContact(t *testing.T) {
	for contact, want := range map[string]bool{
		"https://example.com/bot": true, "http://example.com": true, "mailto:bot@example.com": true,
		"bot@example.com": false, "mailto:": false, "mailto:Bot <bot@example.com>": false, "https://": false,
		"ftp://example.com/": false, "https://example.com/ (x)": false, "https://example.com/)\r\nX: y": false, "": false,
	} {
		if got := collyfetch.IsContact(contact); got != want {
			t.Errorf("%q: %v, want %v", contact, got, want)
		}
	}
}
