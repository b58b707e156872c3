package supervisor

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A brake needs a name that a server can have, because a brake on any other name has no effect.
func TestBrakeHost(t *testing.T) {
	long := strings.Repeat("a", maxDNSLabel)
	for name, want := range map[string]string{
		"Shop.Example": "shop.example", "b\u00fccher.example": "xn--bcher-kva.example",
		"_dmarc.example": "_dmarc.example",
		"127.0.0.1":      "127.0.0.1", "[::1]": "[::1]", long + ".example": long + ".example",
		"a\nb": "", "a\tb": "", "a\u0085b.example": "", " a.example": "", "a..b": "",
		".a": "", "a\u202eb.example\n": "",
		long + "a.example": "", strings.Repeat(long+".", 4) + "example": "", "": "", ".": "",
		"*.example": "", "a.example/": "",
	} {
		if got, ok := ParseBrakeHost(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, ok, want)
		}
	}
	f := newDaemonFixture(t)
	f.start(false)
	for _, name := range []string{"a\nb", "a..b"} {
		if err := f.SetBrake(t.Context(), api.Brake{Host: name, Reason: "test"}); err == nil ||
			!strings.Contains(err.Error(), "is not the name of a host") {
			t.Errorf("a brake on %q: %v", name, err)
		}
	}
	if all := f.Supervisor.OperatorBrakes.All(); len(all) > 0 {
		t.Errorf("the brakes %v are active", all)
	}
}
