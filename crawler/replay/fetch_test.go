package replay

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// A recreated error has the class of the recorded one. Otherwise a replay would retry more or less
// often than the crawl did.
func TestRecreateError(t *testing.T) {
	var dns *net.DNSError
	if err := recreateError("dial tcp: lookup a.test: no such host", "a.test"); !errors.As(err, &dns) ||
		!dns.IsNotFound {
		t.Errorf("%#v is not the error of an unknown host name", err)
	}
	if err := recreateError("dial tcp 127.0.0.1:1: connect: connection refused",
		"a.test"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%#v is not the error of a refused connection", err)
	}
	if err := recreateError("malformed HTTP response", "a.test"); !errors.Is(err, decorum.Malformed) {
		t.Errorf("%#v is not malformed", err)
	}
	if err := recreateError("read: connection reset by peer", "a.test"); errors.Is(err, decorum.Malformed) ||
		errors.As(err, &dns) || err.Error() != "read: connection reset by peer" {
		t.Errorf("%#v has another class", err)
	}
}
