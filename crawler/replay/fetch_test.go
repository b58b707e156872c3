package replay

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// What came of a recorded failure is of the class that it was of: else a replay
// would ask again more or less often than the crawl did.
func TestRecreateError(t *testing.T) {
	var dns *net.DNSError
	if err := recreateError("dial tcp: lookup a.test: no such host", "a.test"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("%#v is not of a name that is not known", err)
	}
	if err := recreateError("dial tcp 127.0.0.1:1: connect: connection refused", "a.test"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%#v is not of a connection that was refused", err)
	}
	if err := recreateError("malformed HTTP response", "a.test"); !errors.Is(err, decorum.Malformed) {
		t.Errorf("%#v is not malformed", err)
	}
	if err := recreateError("read: connection reset by peer", "a.test"); errors.Is(err, decorum.Malformed) || errors.As(err, &dns) || err.Error() != "read: connection reset by peer" {
		t.Errorf("%#v is of another class", err)
	}
}
