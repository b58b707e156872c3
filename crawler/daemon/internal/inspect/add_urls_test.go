package inspect

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/storage"
)

// TestParseEntry: a byte order mark and blanks before the URL of a line have no effect.
func TestParseEntry(t *testing.T) {
	for _, line := range []string{
		"http://a.example/", "\ufeffhttp://a.example/ # a", `{"url": "http://a.example/"}`,
		"\ufeff{\"url\": \"http://a.example/\"}", ` {"url": "http://a.example/"}` + "\r",
	} {
		if e, ok := parseURLOrJSONLine(line); !ok || e.URL.String() != "http://a.example/" {
			t.Errorf("%q names %s, %v", line, e.URL, ok)
		}
	}
	for _, line := range []string{"", "a.example", `{"url": "a.example"}`, `{"url": `, "\ufeff\ufeff{}"} {
		if e, ok := parseURLOrJSONLine(line); ok {
			t.Errorf("%q names %s", line, e.URL)
		}
	}
}

// TestURLAdderWaitsForTheStore: AddURLs reads no line beyond a batch until the store has queued the
// batch.
func TestURLAdderWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches = 5
		proceed, read := make(chan struct{}), 0
		in := urlBatchAdder{discover: func(_ context.Context, _ func(storage.Entry, error),
			batch []storage.Entry) (int, error) {
			<-proceed // like a store that cannot write yet
			return len(batch), nil
		}}
		done := make(chan error)
		go func() {
			done <- in.addAll(t.Context(), func(yield func(string, error) bool) {
				for read < batches*engine.SeedBatchSize {
					if read++; !yield(fmt.Sprintf("http://a.example/%d", read), nil) {
						return
					}
				}
			})
		}()
		for taken := range batches {
			synctest.Wait()
			if want := (taken + 1) * engine.SeedBatchSize; read != want ||
				in.counts.Added != taken*engine.SeedBatchSize {
				t.Fatalf("%d lines are read and %d added, want %d and %d", read, in.counts.Added, want,
					taken*engine.SeedBatchSize)
			}
			proceed <- struct{}{}
		}
		proceed <- struct{}{} // the last batch is empty
		if err := <-done; err != nil || in.counts.Added != batches*engine.SeedBatchSize {
			t.Errorf("%+v, %v", in.counts, err)
		}
	})
}
