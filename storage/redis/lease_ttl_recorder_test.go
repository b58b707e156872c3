package redis

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// Each partition records the longest lease, with the time for which a replaced master may still give
// leases added. A shorter one does not replace it.
func TestLeaseTTLRecorder(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartClusterForTest(t, 1, 0)
	c := openTestClientOn(t, cluster, newPrefix())
	r, all := newLeaseTTLRecorder(c, time.Second), c.Partitions()
	recorded := func(p *client.Partition, want time.Duration) {
		t.Helper()
		text := must1(cluster.Nodes()[0].Do(t.Context(), "HGET", p.Key("m"), "longest"))
		if us := must1(strconv.ParseInt(text, 10,
			64)); time.Duration(us)*time.Microsecond != want+pingInterval+time.Second || r.maxTTL(p) != want {
			t.Errorf("%s µs are recorded, and maxTTL returns %v, want %v", text, r.maxTTL(p), want)
		}
	}
	must(t, r.record(t.Context(), all[0], time.Minute))
	recorded(all[0], time.Minute)
	must(t, r.tryRecord(t.Context(), slices.Clone(all), time.Second))
	recorded(all[0], time.Minute)
	recorded(all[1], time.Second)
	recorded(all[2], time.Second)
	must(t, r.record(t.Context(), all[0], time.Hour))
	recorded(all[0], time.Hour)
}
