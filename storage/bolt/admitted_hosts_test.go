package bolt

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// TestAdmittedHostCounter: a host is counted from its admission on: before the write, during it and
// from the file.
func TestAdmittedHostCounter(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	defer f.close()
	open := func() *admittedHostCounter {
		c := &admittedHostCounter{damage: &damageReporter{}}
		must(t, f.update(c.load))
		return c
	}
	check := func(when string, c *admittedHostCounter, host string, want storage.AdmittedHostTotals) {
		t.Helper()
		must(t, f.view(func(tx *bbolt.Tx) error {
			if got, err := c.count(tx, storage.HostToAdmit{Host: host, Domain: "a.example"}); err != nil ||
				got != want {
				t.Errorf("%s: %s: %+v (%v), want %+v", when, host, got, err, want)
			}
			return nil
		}))
	}
	c := open()
	check("new", c, "www.a.example", storage.AdmittedHostTotals{})
	c.add(storage.HostToAdmit{Host: "www.a.example", Domain: "a.example"}, 1)
	check("pending", c, "www.a.example", storage.AdmittedHostTotals{Hosts: 1, DomainHosts: 1, IncludesHost: true})
	first := c.takePending()
	c.add(storage.HostToAdmit{Host: "m.a.example", Domain: "a.example"}, 2)
	check("being written", c, "www.a.example", storage.AdmittedHostTotals{Hosts: 2, DomainHosts: 2, IncludesHost: true})
	must(t, f.update(first.write))
	if n := open().total; n != 1 {
		t.Errorf("the file counts %d hosts after the first write, want 1", n)
	}
	second := c.takePending()
	must(t, f.update(second.write))
	if len(c.pending.hosts) != 0 || len(c.takePending().hosts) != 0 {
		t.Error("hosts are pending after they were written")
	}
	c = open()
	check("opened again", c, "m.a.example", storage.AdmittedHostTotals{Hosts: 2, DomainHosts: 2, IncludesHost: true})
	check("opened again", c, "b.a.example", storage.AdmittedHostTotals{Hosts: 2, DomainHosts: 2})
}
