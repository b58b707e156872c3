package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage"
)

// reportedRefusals passes refused URLs to a DiscoveryRefusalReporter, and returns what it logs.
func reportedRefusals(t *testing.T, o *DiscoveryRefusalReporter, reason frontier.RefusalReason, urls ...string) string {
	t.Helper()
	var log bytes.Buffer
	o.log = slog.New(slog.NewTextHandler(&log, nil))
	for _, text := range urls {
		u, err := decorum.ParseURL(text)
		if err != nil {
			t.Fatal(err)
		}
		e := storage.Entry{URL: u, Source: storage.SourceLink, Depth: 1}
		o.countAndReportRefusal(e, &decorum.Error{Op: "scope", URL: text, Kind: decorum.OutOfScope,
			Err: &frontier.Refusal{Reason: reason, Detail: "too many"}})
	}
	return log.String()
}

// A host that reaches a limit is logged once for each limit, with a URL and the field that sets the
// limit.
func TestLimitsAreWarnedOf(t *testing.T) {
	var o DiscoveryRefusalReporter
	first := reportedRefusals(t, &o, frontier.TooManyHostURLs, "http://a.test/1", "http://a.test/2")
	if strings.Count(first, "\n") != 1 ||
		!strings.Contains(
			first, `host=a.test reason=host_urls why="too many" url=http://a.test/1 field=scope.max_urls_per_host`) {
		t.Errorf("logged %s", first)
	}
	if again := reportedRefusals(t, &o, frontier.TooManyHostURLs, "https://a.test/3"); again != "" {
		t.Errorf("logged again %s", again)
	}
	if other := reportedRefusals(t, &o, frontier.FarCalendar, "http://a.test/3"); strings.Count(other, "\n") != 1 ||
		strings.Contains(other, "field=") {
		t.Errorf("of another limit %s", other)
	}
	for _, wanted := range []frontier.RefusalReason{frontier.OutsideScope, frontier.Excluded, frontier.NotIncluded,
		frontier.DeepLink, frontier.WrongScheme} {
		if got := reportedRefusals(t, &o, wanted, "http://b.test/"); got != "" {
			t.Errorf("%s is logged, and the operator expects it: %s", wanted, got)
		}
	}
	if long := reportedRefusals(t, &o, frontier.LongURL, "http://c.test/"+strings.Repeat("x", 3000)); len(long) > 600 {
		t.Errorf("logged %d bytes", len(long))
	}
	if n := o.RefusedURLCount.Load(); n != 10 {
		t.Errorf("%d were counted, want 10", n)
	}
}

// A domain with endless hosts causes one warning, which names the domain. A crawl with too many hosts
// causes one warning, however many hosts have reached limits before. Nearly every host reaches the limit
// of sort links: the first one causes the only warning.
func TestLimitsOfHostsAreWarnedOfOnce(t *testing.T) {
	var o DiscoveryRefusalReporter
	log := reportedRefusals(t, &o, frontier.TooManyDomainHosts, "http://1.a.test/",
		"http://2.a.test/", "https://x.y.a.test/")
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "domain=a.test reason=domain_hosts") ||
		!strings.Contains(log, "field=scope.max_hosts_per_domain") {
		t.Errorf("logged %s", log)
	}
	log = reportedRefusals(t, &o, frontier.TooManySortLinks, "http://a.test/?C=N", "http://b.test/?C=N")
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "host=a.test reason=sort_links") {
		t.Errorf("logged %s", log)
	}
	for i := range 2 * maxLimitWarnings {
		reportedRefusals(t, &o, frontier.TooManyHostURLs, fmt.Sprintf("http://h%d.test/", i))
	}
	log = reportedRefusals(t, &o, frontier.TooManyHosts, "http://b.test/", "http://c.test/")
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, "the crawl has reached a limit") ||
		!strings.Contains(log, "reason=hosts") || !strings.Contains(log, "field=scope.max_hosts") {
		t.Errorf("logged %s", log)
	}
}

// However many hosts reach limits, the log stays readable.
func TestWarningsOfLimitsAreBounded(t *testing.T) {
	var o DiscoveryRefusalReporter
	var urls []string
	for i := range 3 * maxLimitWarnings {
		urls = append(urls, fmt.Sprintf("http://h%d.test/", i))
	}
	log := reportedRefusals(t, &o, frontier.TooManyPatternURLs, urls...)
	if n := strings.Count(log, "\n"); n != maxLimitWarnings+1 || !strings.Contains(log, "by decorum report only") ||
		len(o.warnedLimits) != maxLimitWarnings {
		t.Errorf("%d lines, %d remembered", n, len(o.warnedLimits))
	}
}

// However many seeds are out of scope, the log stays readable.
func TestWarningsOfSeedsAreBounded(t *testing.T) {
	var log strings.Builder
	o := DiscoveryRefusalReporter{log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 * maxLimitWarnings {
		o.countAndReportRefusal(storage.Entry{Source: storage.SourceSeed}, errors.New("elsewhere"))
	}
	if n := strings.Count(log.String(), "\n"); n != maxLimitWarnings || o.RefusedURLCount.Load() != 3*maxLimitWarnings {
		t.Errorf("%d lines, %d counted", n, o.RefusedURLCount.Load())
	}
}

// The fields that warnings name exist in the project file.
func TestLimitFields(t *testing.T) {
	for reason, field := range limitFieldByReason {
		section, name, ok := strings.Cut(field, ".")
		if !ok {
			continue
		}
		file := testfile.Write(t, "p.yaml",
			fmt.Sprintf("agent: {contact: 'mailto:a@b.example'}\nseeds: ['http://a.test/']\n%s: {%s: 16}\n", section,
				name))
		if _, err := project.Read(file); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
