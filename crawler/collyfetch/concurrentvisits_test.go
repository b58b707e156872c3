package collyfetch_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"
)

// TestVisitFromSeveralGoroutines: as with colly, several goroutines may call Visit at the same time.
func TestVisitFromSeveralGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		crawl := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		var visits sync.WaitGroup
		for _, path := range []string{"/", "/church", "/mill"} {
			for range 4 {
				visits.Go(func() { must(t, crawl.Visit("http://a.test"+path)) })
			}
		}
		visits.Wait()
		must(t, crawl.Run(t.Context()))
		if n := crawl.Stats().Pages; n != 3 {
			t.Errorf("%d pages were visited, want 3", n)
		}
		checkPolite(t, web)
	})
}
