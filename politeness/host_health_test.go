package politeness_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

// TestHostHealth feeds the answers of pages to NextVisit, and compares the rests.
func TestHostHealth(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers string // page and status, with ! if the last visit to the page failed, too
		want    string // rest after each answer, in seconds
		failed  string // pages that are named as failed in the end, the newest first
	}{
		{"a failed page is the page's own", "/1:500 /2:200 /3:502 /4:200", "1 1 1 1", "/3 /1"},
		{"two failed pages are, too", "/1:500 /2:504 /3:200 /4:500", "1 1 1 1", "/4 /2 /1"},
		{"the third in a row counts, and each further one", "/1:500 /2:502 /3:500 /4:599 /5:500",
			"1 1 5 10 20", "/5 /4 /3 /2 /1"},
		{"an answer shows that the pages fail, not the host", "/1:500 /2:500 /3:500 /4:500 /5:200 /6:500",
			"1 1 5 10 1 1", "/6 /4 /3 /2 /1"},
		{"a row that is short beside the answers before it rests for 40 s at most",
			"/a:200 /b:200 /c:200 /d:200 /1:500 /2:500 /3:500 /4:500 /5:500 /6:500 /7:500 /8:500 /9:500 /10:500",
			"1 1 1 1 1 1 5 10 20 40 40 40 80 160", "/10 /9 /8 /7 /6"},
		{"404 shows it as well", "/1:500 /2:500 /3:404 /4:500 /5:500 /6:500", "1 1 1 1 1 5", "/6 /5 /4 /2 /1"},
		{"a page counts once", "/1:500 /2:500 /1:500 /1:500 /2:500 /3:500 /1:500", "1 1 1 1 1 5 5", "/3 /2 /1"},
		{"also if other pages answered since", "/1:500 /2:200 /1:500! /3:500 /4:500 /1:500!",
			"1 1 1 1 1 1", "/4 /3 /1"},
		{"and if its first failure is long ago", "/1:500! /2:500! /3:500! /4:500!", "1 1 1 1", "/4 /3 /2 /1"},
		{"a page that answers is no longer named", "/1:500 /2:500 /1:200! /3:404", "1 1 1 1", "/2"},
		{"only the last failed pages are named",
			"/1:500 /a:200 /2:500 /a:200 /3:500 /a:200 /4:500 /a:200 /5:500 /a:200 /6:500",
			"1 1 1 1 1 1 1 1 1 1 1", "/6 /5 /4 /3 /2"},
		{"login pages", "/1:403 /2:401 /3:200 /4:403", "1 1 1 1", "/4 /2 /1"},
		{"a host that refuses", "/1:403 /2:402 /3:451 /4:403", "1 1 5 10", "/4 /3 /2 /1"},
		{"other 4xx never", "/1:404 /2:410 /3:400 /4:408 /5:425 /6:418 /7:421", "1 1 1 1 1 1 1", ""},
		{"429 and 503 at once", "/1:429 /1:503! /1:503!", "5 10 20", ""},
		{"no answer at once", "/1:0 /1:0! /2:200", "5 10 5", ""},
		{"a row does not end the host's own failures", "/1:0 /2:0 /3:500 /4:500 /5:500 /6:200 /7:200 /8:200",
			"5 10 10 10 20 5 1 1", "/5 /4 /3"},
		{"nor do these end a row", "/1:500 /2:500 /3:0 /4:500 /5:200 /6:200", "1 1 5 10 1 1", "/4 /2 /1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := politeness.Policy{JitterFunc: noJitter, MaxLearnedDelay: -1}
			var health politeness.HostHealth
			var rests, failed []string
			for answer := range strings.FieldsSeq(tt.answers) {
				v := politeness.FinishedVisit{Start: noon, End: noon, Health: health}
				answer, v.PageFailedBefore = strings.CutSuffix(answer, "!")
				path, status, _ := strings.Cut(answer, ":")
				v.Page = "http://a.test" + path
				fmt.Sscan(status, &v.Status)
				next := p.NextVisit(v)
				health, rests = next.Health, append(rests, fmt.Sprint(next.Delay.Seconds()))
			}
			for _, page := range health.FailedPages {
				failed = append(failed, strings.TrimPrefix(page.URL, "http://a.test"))
			}
			if got := strings.Join(rests, " "); got != tt.want {
				t.Errorf("rests of %s s, want %s s", got, tt.want)
			}
			if got := strings.TrimSpace(strings.Join(failed, " ")); got != tt.failed {
				t.Errorf("failed pages %s, want %s", got, tt.failed)
			}
		})
	}
}

// TestInconclusiveVisit: a visit that says nothing about the host leaves its health and its
// back-off as they are.
func TestInconclusiveVisit(t *testing.T) {
	p := politeness.Policy{JitterFunc: noJitter}
	v := politeness.FinishedVisit{Page: "http://a.test/", Start: noon, End: noon, Inconclusive: true,
		Health: politeness.HostHealth{ConsecutiveFailures: 3, PagesInRow: 2, LastFailureStatus: 503}}
	for _, v.Status = range []int{0, 200, 500, 429} {
		if next := p.NextVisit(v); next.Health != v.Health || next.Delay != 20*sec {
			t.Errorf("after status %d: rest %v, %+v", v.Status, next.Delay, next.Health)
		}
	}
}

// TestLongPageURLs: URLs that differ only after the stored length are different pages.
func TestLongPageURLs(t *testing.T) {
	p, health := politeness.Policy{JitterFunc: noJitter}, politeness.HostHealth{}
	for i := range 3 {
		health = p.NextVisit(politeness.FinishedVisit{Start: noon, End: noon, Status: 500, Health: health,
			Page: "http://a.test/" + strings.Repeat("ä", 200) + fmt.Sprint(i)}).Health
	}
	if health.ConsecutiveFailures != 1 {
		t.Errorf("%+v", health)
	}
	for _, page := range health.FailedPages[:3] {
		if len(page.URL) > politeness.MaxFailedPageURL || !strings.HasPrefix(page.URL, "http://a.test/ää") {
			t.Errorf("%d bytes: %s", len(page.URL), page.URL)
		}
	}
}

// TestBackoffSettings: base, factor and maximum of the back-off are the policy's.
func TestBackoffSettings(t *testing.T) {
	for _, tt := range []struct {
		policy politeness.Policy
		want   []time.Duration
	}{
		{politeness.Policy{InitialBackoff: 2 * sec, BackoffFactor: 3, MaxBackoff: 20 * sec},
			[]time.Duration{2 * sec, 6 * sec, 18 * sec, 20 * sec, 20 * sec}},
		{politeness.Policy{InitialBackoff: 2 * sec, BackoffFactor: 1, MaxBackoff: 20 * sec},
			[]time.Duration{2 * sec, 2 * sec, 2 * sec}},
		{politeness.Policy{InitialBackoff: 9 * sec, MaxBackoff: 4 * sec}, []time.Duration{4 * sec, 4 * sec}},
	} {
		var rests []time.Duration
		tt.policy.JitterFunc = noJitter
		for health := (politeness.HostHealth{}); len(rests) < len(tt.want); {
			next := tt.policy.NextVisit(politeness.FinishedVisit{Start: noon, End: noon, Status: 503, Health: health})
			health, rests = next.Health, append(rests, next.Delay)
		}
		if !slices.Equal(rests, tt.want) {
			t.Errorf("rests of %v, want %v", rests, tt.want)
		}
	}
}

// TestRestReason: reports say why a host rests.
func TestRestReason(t *testing.T) {
	for _, tt := range []struct {
		statuses []int
		want     string
	}{
		{[]int{500, 500}, ""},
		{[]int{500, 500, 502}, "back-off, step 1: 3 different pages in a row failed, the last with status 502"},
		{[]int{429, 503}, "back-off, step 2: it answered with status 503"},
		{[]int{0}, "back-off, step 1: a request had no answer"},
		{[]int{503, 200}, ""},
	} {
		var health politeness.HostHealth
		for i, status := range tt.statuses {
			health = politeness.Policy{}.NextVisit(politeness.FinishedVisit{Page: fmt.Sprint("http://a.test/", i),
				Start: noon, End: noon, Status: status, Health: health}).Health
		}
		if got := health.RestReason(); got != tt.want {
			t.Errorf("after %v: %q, want %q", tt.statuses, got, tt.want)
		}
	}
}

// TestAnswerTable: docs/crawling.md has the table of answers.
func TestAnswerTable(t *testing.T) {
	doc, err := os.ReadFile("../docs/crawling.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := politeness.AnswerTable(); !strings.Contains(string(doc), table) {
		t.Errorf("docs/crawling.md lacks this table:\n%s", table)
	}
	scopes := map[politeness.AnswerScope][]int{
		politeness.ScopeHost:              {0, 429, 503},
		politeness.ScopePageUntilRepeated: {401, 402, 403, 451, 500, 501, 502, 504, 599},
		politeness.ScopePage:              {-1, 100, 200, 301, 304, 400, 404, 410, 418, 999, 1000},
	}
	for want, statuses := range scopes {
		for _, status := range statuses {
			if got := politeness.ScopeOf(status); got != want {
				t.Errorf("status %d: scope %d, want %d", status, got, want)
			}
		}
	}
}
