package collyfetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errNameServer = errors.New("the name server is away")

// failing returns names whose name server cannot be reached, and counts how
// often that is tried.
func failing(ttl time.Duration, wait time.Duration, count *int) *names {
	var mu sync.Mutex
	return newNames(&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		mu.Lock()
		*count++
		mu.Unlock()
		select {
		case <-time.After(wait):
			return nil, errNameServer
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}, ttl)
}

// TestFailedLookups are not remembered.
func TestFailedLookups(t *testing.T) {
	count := 0
	n := failing(time.Minute, 0, &count)
	for range 2 {
		before := count
		if _, err := n.lookup(t.Context(), "a.test"); err == nil {
			t.Error("no error")
		}
		if count == before {
			t.Error("the name server was not asked again")
		}
	}
}

// TestDesertedLookup: where the first that asked goes away, another asks on.
func TestDesertedLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		n := failing(time.Minute, time.Hour, &count)
		hasty, cancel := context.WithCancel(t.Context())
		patient, cancelPatient := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := n.lookup(hasty, "a.test"); err == nil {
				t.Error("the hasty one got an answer")
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := n.lookup(patient, "a.test"); err == nil {
				t.Error("the patient one got an answer")
			}
		})
		synctest.Wait()
		before := count
		cancel()
		synctest.Wait()
		if count == before {
			t.Error("nobody asks on")
		}
		cancelPatient()
		wg.Wait()
	})
}

// TestNamesAreBounded, and what is remembered is forgotten in time.
func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNames(nil, time.Minute)
		keep := func(host string) bool {
			a, mine := n.take(host)
			if mine {
				a.until = time.Now().Add(n.ttl)
				close(a.done)
			}
			return mine
		}
		for i := range 2 * maxNames {
			keep(fmt.Sprint("host", i))
		}
		if len(n.answers) > maxNames {
			t.Errorf("%d names are remembered, want at most %d", len(n.answers), maxNames)
		}
		if last := fmt.Sprint("host", 2*maxNames-1); keep(last) {
			t.Error("the last name is not remembered")
		} else if time.Sleep(time.Minute); !keep(last) {
			t.Error("the last name is remembered for too long")
		}
	})
}
