package redistest

import (
	"testing"
	"time"
)

// A cluster of three masters with one replica each is ready when StartClusterForTest returns.
func TestStart(t *testing.T) {
	begin := time.Now()
	c := StartClusterForTest(t, 3, 1)
	masters := 0
	for _, n := range c.Nodes() {
		if n.IsMaster(t.Context()) {
			masters++
		}
	}
	if masters != 3 || len(c.Addrs()) != 6 {
		t.Errorf("%d masters of %d servers, want 3 of 6", masters, len(c.Addrs()))
	}
	t.Logf("ready after %v", time.Since(begin))
}
