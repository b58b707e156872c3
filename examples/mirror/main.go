// Mirror copies a site into web archives (WARC): its pages and their images, byte for byte as the
// server sent them. Run it again after Ctrl-C or a crash, and it resumes where it stopped.
//
//	go run ./examples/mirror https://example.com/ example-mirror
//
// It builds a crawl from the packages of decorum, without callbacks. The same packages provide what
// decorum crawl --warc does in addition, for example revisits.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/warc"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: mirror URL DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mirror(ctx, os.Args[1], os.Args[2], httpfetch.Config{}, politeness.Policy{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mirror archives the host of url in dir, which one process at a time may use.
func mirror(ctx context.Context, url, dir string, fetch httpfetch.Config, policy politeness.Policy) (err error) {
	seed, err := decorum.ParseURL(url)
	if err != nil {
		return err
	}
	archive, err := warc.OpenArchiveWriter(warc.Config{Dir: dir, FilePrefix: seed.Origin().Host()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	// The archive is on disk before the state records that a page has been visited.
	state, err := bolt.Open(filepath.Join(dir, "state.db"), bolt.Options{BeforeWrite: archive.Sync})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()

	fetch.UserAgent = "mirrorbot/1.0 (+https://example.org/bot)" // yours
	fetch.CaptureExchanges = true
	c, err := newCrawler(seed, state, fetch, policy)
	if err != nil {
		return err
	}
	c.Archive = archiveRecorder{archive}
	// Visit again the hosts that an earlier run suspended, unless the reason still applies.
	if err := c.Frontier.EndSuspensionsExcept(ctx, c.ShouldStaySuspended); err != nil {
		return err
	}
	if _, err := c.Frontier.Discover(ctx, storage.Entry{URL: seed, Source: storage.SourceSeed}); err != nil {
		return err
	}
	return c.Run(ctx)
}

// newCrawler returns a crawler for the host of seed.
func newCrawler(seed decorum.URL, state storage.Store, fetch httpfetch.Config,
	policy politeness.Policy) (*crawler.Crawler, error) {
	fetcher, err := httpfetch.New(fetch)
	if err != nil {
		return nil, err
	}
	agent, err := robots.NewAgent(fetcher.ProductToken()) // the name in robots.txt
	if err != nil {
		return nil, err
	}
	robotsGate := gate.New(gate.Config{Agent: agent}, state)
	limits := politeness.NewLimiter(politeness.LimiterConfig{RestartedAt: time.Now()})
	scope := frontier.NewScope(frontier.ScopeConfig{Mode: frontier.HostScope, CurrentYear: time.Now().Year()},
		[]decorum.URL{seed})
	return &crawler.Crawler{
		Frontier: frontier.New(state, frontier.Config{Scope: scope, CleanURL: robotsGate.CleanURL, Budget: limits}),
		Gate:     robotsGate, Policy: policy, Limiter: limits, Fetcher: fetcher,
		Settings: crawler.Settings{FollowedLinkKinds: crawler.FollowedLinkKinds{Images: true}},
	}, nil
}

// An archiveRecorder is a crawler.Recorder that writes visits to the archive.
type archiveRecorder struct{ *warc.ArchiveWriter }

// Record archives a visit. An error ends the crawl, because the archive must have every page that
// the state records as visited.
func (s archiveRecorder) Record(_ context.Context, v *crawler.Visit) error {
	if v.Exchange == nil {
		return nil // the server could not be reached
	}
	_, err := s.WriteVisit(&warc.Visit{URL: v.URL().String(), Date: v.Start, Exchange: v.Exchange})
	if errors.Is(err, warc.ErrNoResponse) {
		return nil
	}
	return err
}
