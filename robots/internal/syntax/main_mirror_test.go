package syntax

import (
	"testing"
)

// FuzzHost proves that the result of ParseMainMirror is itself a valid value, with the same result.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"myhost.ru", "https://www.myhost.ru:8080", "0x7f.1", "xn--a.ru",
		"MyHost.RU:080", "a..b", "[::1]:80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		host, ok := ParseMainMirror(value)
		if ok == (host == "") {
			t.Fatalf("parseMirror(%q) = %q, %v", value, host, ok)
		}
		if !ok {
			return
		}
		if again, ok := ParseMainMirror(host); !ok || again != host {
			t.Errorf("%q is read as %q, and that as %q, %v", value, host, again, ok)
		}
	})
}
