package redis

import (
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// An import that is repeated, because no replica has confirmed it, queues a redirect of a robots.txt
// once, although no seen set has its URL.
func TestImportIsSentAgain(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	replica, stalled := c.Nodes()[1], make(chan error, 10)
	s := openServerClock(t, c, newPrefix(),
		Options{Partitions: 1, Timeout: 300 * time.Millisecond, OnStallChange: func(err error) { stalled <- err }})
	stored := []storage.StoredEntry{{Entry: pageEntry("https://a.example/")},
		{Entry: pageEntry("https://a.example/robots-to")}}
	stored[1].RobotsFor = pageEntry("https://b.example/").URL.Origin()
	must(t, replica.Signal(syscall.SIGSTOP))
	imported := make(chan error, 1)
	go func() {
		imported <- s.Import(t.Context(), []storage.OriginDump{{Origin: stored[0].URL.Origin(), URLs: stored}})
	}()
	if err := <-stalled; err == nil {
		t.Error("OnStallChange got nil, want an error")
	}
	must(t, replica.Signal(syscall.SIGCONT))
	must(t, <-imported)
	if n := must1(s.Counts(t.Context())).QueuedURLs; n != len(stored) {
		t.Errorf("%d URLs are queued, want %d", n, len(stored))
	}
}
