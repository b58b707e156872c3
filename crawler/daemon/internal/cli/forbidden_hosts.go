package cli

import (
	"errors"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/internal/seedoutcome"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// maxForbiddenHosts bounds the hosts of forbiddenHosts.
const maxForbiddenHosts = 1000

// A forbiddenHosts holds why the latest visits of a run may not connect to their hosts, such as for a private
// address, which the store does not keep. It is safe for concurrent use.
type forbiddenHosts struct {
	mu      sync.Mutex // guards reasons
	reasons map[string]string
}

// add records the host of v if v may not connect to it, and forgets the host otherwise.
func (f *forbiddenHosts) add(v *crawler.Visit) {
	host := v.URL().Origin().Host()
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.Response != nil || !errors.Is(v.Err, decorum.Forbidden) {
		delete(f.reasons, host)
		return
	}
	if f.reasons == nil {
		f.reasons = map[string]string{}
	}
	if len(f.reasons) < maxForbiddenHosts {
		f.reasons[host] = plaintext.ReplaceControlChars(seedoutcome.ErrorCause(v.Err))
	}
}

// reason returns why no visit may connect to host, with the setting that allows it; "" if none was refused.
func (f *forbiddenHosts) reason(host string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reasons[host]
}
