package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/redis"
)

// TestCrewWaitsForPermits: what a worker has asked for is not its own until it is
// granted: neither while the question is under way, nor where no answer comes.
func TestCrewWaitsForPermits(t *testing.T) {
	c := &crew{commons: &commons{}, rates: politeness.NewLimits(politeness.LimitsConfig{})}
	c.report.Limits.Pages = 100
	begun := func() (n int) {
		for c.Page() == nil {
			n++
		}
		return n
	}
	for i, tt := range []struct {
		grant, asking, after int // pages more, and those begun meanwhile and then
		err                  error
	}{
		{grant: 3, asking: 0, after: 3},
		{grant: 0, asking: 0, after: 0},
		{err: errors.New("no answer"), asking: 0, after: 0},
		{grant: 1, asking: 0, after: 1},
	} {
		asking := -1
		c.muster = func(_ context.Context, r redis.Report) (redis.Muster, error) {
			asking = begun()
			return redis.Muster{Workers: 1, Permits: r.Used + int64(tt.grant)}, tt.err
		}
		if err := c.call(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := begun(); asking != tt.asking || after != tt.after {
			t.Errorf("%d: %d pages were begun while it asked for more, and %d then; want %d and %d", i, asking, after, tt.asking, tt.after)
		}
	}
	if left, wait := c.Ready(time.Now(), 1); left != 0 || wait == 0 {
		t.Errorf("%d pages more may be begun", left)
	}
}
