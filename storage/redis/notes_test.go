package redis

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

var shopOrigin = must1(decorum.ParseURL("https://shop.example/")).Origin()

// wantNote fails the test unless the note "rules" of shopOrigin has the value want.
func wantNote(t *testing.T, s *Store, want string) {
	t.Helper()
	if got := must1(s.ReadNote(t.Context(), shopOrigin, "rules")); string(got) != want {
		t.Fatalf("the note is %q, want %q", got, want)
	}
}

// countHGETs returns how many HGET commands the servers have carried out.
func countHGETs(t *testing.T, c *redistest.Cluster) (n int) {
	t.Helper()
	calls := regexp.MustCompile(`cmdstat_hget:calls=(\d+)`)
	for _, node := range c.Nodes() {
		text := must1(node.Do(t.Context(), "INFO", "commandstats"))
		if m := calls.FindStringSubmatch(text); m != nil {
			n += must1(strconv.Atoi(m[1]))
		}
	}
	return n
}

// A note is read from the server once, until a process changes it. That process sees the new note
// immediately, and so does a process that leases a URL that the other has added since.
func TestNotesAreInMemoryUntilTheyChange(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 3, 1)
	prefix := newPrefix()
	a, b := openServerClock(t, c, prefix, Options{}),
		openServerClock(t, c, prefix, Options{PartitionRefreshInterval: time.Millisecond})
	must(t, a.SetNote(t.Context(), shopOrigin, "rules", []byte("none")))
	wantNote(t, b, "none")
	before := countHGETs(t, c)
	for range 1000 {
		wantNote(t, b, "none")
	}
	if n := countHGETs(t, c) - before; n > 0 {
		t.Errorf("%d HGET commands for 1000 reads of a cached note, want 0", n)
	}
	for i := range 100 {
		now := fmt.Sprint("version ", i)
		must(t, a.SetNote(t.Context(), shopOrigin, "rules", []byte(now)))
		wantNote(t, a, now)
		_, err := a.Add(t.Context(), []storage.Entry{pageEntry(fmt.Sprintf("https://shop.example/%d", i))}, 0)
		must(t, err)
		lease := waitForLease(t, b, time.Minute)
		wantNote(t, b, now)
		must(t, b.Ack(t.Context(), []storage.Ack{{Lease: lease}}))
	}
	must(t, b.SetNote(t.Context(), shopOrigin, "rules", nil))
	if v := must1(b.ReadNote(t.Context(), shopOrigin, "rules")); v != nil {
		t.Errorf("the deleted note is %q", v)
	}
}

// Notes are read again after the connection that has read them is lost.
func TestNotesOfALostConnectionAreReadAgain(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	opts := Options{Durability: DurabilityNone, Partitions: 1, Timeout: 500 * time.Millisecond}
	a, b := openServerClock(t, c, "shared", opts), openServerClock(t, c, "shared", opts)
	must(t, a.SetNote(t.Context(), shopOrigin, "rules", []byte("old")))
	wantNote(t, b, "old")

	server := c.Nodes()[0]
	c.KillNode(server)
	c.StartKilledNode(server)
	c.WaitReady()
	must(t, a.SetNote(t.Context(), shopOrigin, "rules", []byte("new")))
	wantNote(t, b, "new")

	must(t, server.Signal(syscall.SIGSTOP)) // the connection stays open, and is silent
	silent := time.Now()
	for asked := t.Context(); ; {
		ctx, cancel := context.WithTimeout(asked, 50*time.Millisecond)
		_, err := b.ReadNote(ctx, shopOrigin, "rules")
		cancel()
		if err != nil {
			break // the cached note has expired
		}
		if time.Since(silent) > time.Minute {
			t.Fatal("a cached note is still used after the server has been silent for one minute")
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(t, server.Signal(syscall.SIGCONT))
	must(t, a.SetNote(t.Context(), shopOrigin, "rules", []byte("newest")))
	wantNote(t, b, "newest")
}

// If a server does not allow CLIENT, each read of a note goes to the server.
func TestNotesWithoutTracking(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0, "--rename-command", "CLIENT", "")
	a := openServerClock(t, c, "p", Options{Durability: DurabilityNone, Partitions: 1})
	b := openServerClock(t, c, "p", Options{Durability: DurabilityNone, Partitions: 1})
	for i := range 20 {
		must(t, a.SetNote(t.Context(), shopOrigin, "rules", []byte(fmt.Sprint(i))))
		wantNote(t, b, fmt.Sprint(i))
	}
}
