package inspect

import (
	"context"
	"errors"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
)

// TestRunningCrawlFails: a panic during a query continues in the goroutine that reads the result,
// and an error is yielded last even if the reader's context has ended.
func TestRunningCrawlFails(t *testing.T) {
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		broken := &RunningCrawl{WithEngine: func(ctx context.Context,
			do func(context.Context, *engine.Engine) error) error {
			return do(ctx, nil)
		}}
		for range broken.FrontierURLs(t.Context(), api.FrontierURLQuery{}) {
			t.Error("unexpected URL")
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := errors.New("closed")
	closed := &RunningCrawl{WithEngine: func(context.Context, func(context.Context, *engine.Engine) error) error {
		return want
	}}
	if err := closed.Report(ctx, api.ReportQuery{}, func(*api.StreamedReport) error {
		return nil
	}); !errors.Is(err, want) {
		t.Errorf("the report ends with %v", err)
	}
	for _, err := range closed.LedgerRecords(ctx, api.LedgerQuery{}) {
		if !errors.Is(err, want) {
			t.Errorf("the ledger ends with %v", err)
		}
	}
}
