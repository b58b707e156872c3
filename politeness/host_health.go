package politeness

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
)

// An AnswerScope says whom the status of an answer concerns.
type AnswerScope uint8

// The scopes of answers.
const (
	// ScopePage: the status concerns the page, and shows that the host works.
	ScopePage AnswerScope = iota
	// ScopePageUntilRepeated: the status concerns the page until pagesUntilHost different pages in
	// a row have answered so; then it concerns the host.
	ScopePageUntilRepeated
	// ScopeHost: the status concerns the host at once.
	ScopeHost
)

// pagesUntilHost is how many different pages in a row must fail before their host counts as failing.
const pagesUntilHost = 3

// maxStepsByRow is how many steps of back-off a row of failed pages causes while it has at most twice as
// many pages as the host has answered before: a part of a site that fails, such as a broken folder,
// does not stop the rest of it. A longer row counts without this limit. maxAnsweredPages bounds the count.
const (
	maxStepsByRow    = 4
	maxAnsweredPages = 1000
)

// answerScopes is the table of all statuses: the first row that contains a status counts. The table
// in docs/crawling.md has the same rows, in columns answer, of and consequence.
var answerScopes = []struct {
	first, last             int // statuses
	scope                   AnswerScope
	answer, of, consequence string // for docs/crawling.md
}{
	{0, 0, ScopeHost, "none: time-out, reset, refused connection", "the host, at once",
		"back-off"},
	{http.StatusTooManyRequests, http.StatusTooManyRequests, ScopeHost, "429", "the host, at once",
		"back-off, at least Retry-After, and a slower learned pace; a Retry-After of more than a day suspends " +
			"the host"},
	{http.StatusServiceUnavailable, http.StatusServiceUnavailable, ScopeHost, "503", "the host, at once",
		"as 429"},
	{500, 599, ScopePageUntilRepeated, "any other 5xx", "the page; the host after three different pages in a row",
		"normal pace; back-off from the third page on"},
	{http.StatusUnauthorized, http.StatusForbidden, ScopePageUntilRepeated, "401, 402, 403",
		"the page; the host after three different pages in a row", "as other 5xx"},
	{http.StatusUnavailableForLegalReasons, http.StatusUnavailableForLegalReasons, ScopePageUntilRepeated, "451",
		"the page; the host after three different pages in a row", "as other 5xx"},
	{100, 999, ScopePage, "any other, such as 200, 301, 404 and 410", "the page",
		"normal pace; ends the row, and takes back a step of back-off"},
}

// ScopeOf returns whom an answer with the given status concerns; 0 means that no answer came.
func ScopeOf(status int) AnswerScope {
	for _, row := range answerScopes {
		if row.first <= status && status <= row.last {
			return row.scope
		}
	}
	return ScopePage
}

// A HostHealth is what the answers of a host have shown about it. The zero value is a healthy host,
// or a new one. Policy.NextVisit returns the health after a visit.
type HostHealth struct {
	// ConsecutiveFailures is the step of the back-off: 0 is none. A failure of the host adds one, an
	// answer that shows that the host works takes one away.
	ConsecutiveFailures int
	// FailuresByRow is how many of ConsecutiveFailures are due to PagesInRow. They end with the row:
	// an answer in between shows that the pages fail, not the host.
	FailuresByRow int
	// PagesInRow counts the different pages that have failed in a row with ScopePageUntilRepeated.
	PagesInRow int
	// AnsweredPages counts answers with ScopePage, at most maxAnsweredPages.
	AnsweredPages int
	// LastFailureStatus is the status of the failure that the last step of the back-off is due to;
	// 0: no answer came.
	LastFailureStatus int
	// FailedPages are the pages that failed last with ScopePageUntilRepeated and have not answered
	// since, the newest first. Unused elements are zero.
	FailedPages [MaxFailedPages]FailedPage
	LearnedPace LearnedPace
}

// MaxFailedPages is how many failed pages a HostHealth names.
const MaxFailedPages = 5

// A FailedPage is a page whose answer did not count as a failure of its host.
type FailedPage struct {
	URL    string // at most MaxFailedPageURL bytes: a longer URL ends with … and a hash
	Status int
}

// MaxFailedPageURL is the greatest length of FailedPage.URL.
const MaxFailedPageURL = 160

// afterVisit returns the health after v, except for the learned pace.
func (h HostHealth) afterVisit(v FinishedVisit, maxFailures int) HostHealth {
	switch ScopeOf(v.Status) {
	case ScopeHost:
		return h.afterFailure(v.Status, maxFailures)
	case ScopePageUntilRepeated:
		return h.afterFailedPage(v, maxFailures)
	}
	h.ConsecutiveFailures = max(h.ConsecutiveFailures-h.FailuresByRow-1, 0)
	h.FailuresByRow, h.PagesInRow = 0, 0
	h.AnsweredPages = min(h.AnsweredPages+1, maxAnsweredPages)
	if h.ConsecutiveFailures == 0 {
		h.LastFailureStatus = 0
	}
	return h.withoutFailedPage(shortenPageURL(v.Page))
}

// afterFailure returns the health after a failure of the host.
func (h HostHealth) afterFailure(status, maxFailures int) HostHealth {
	h.ConsecutiveFailures, h.LastFailureStatus = min(h.ConsecutiveFailures+1, maxFailures), status
	return h
}

// afterFailedPage returns the health after an answer with ScopePageUntilRepeated. A page that has
// failed before says nothing new about the host.
func (h HostHealth) afterFailedPage(v FinishedVisit, maxFailures int) HostHealth {
	page := FailedPage{shortenPageURL(v.Page), v.Status}
	for i := range h.FailedPages {
		if h.FailedPages[i].URL == page.URL && page.URL != "" {
			h.FailedPages[i].Status = page.Status
			return h
		}
	}
	copy(h.FailedPages[1:], h.FailedPages[:])
	h.FailedPages[0] = page
	if v.PageFailedBefore {
		return h
	}
	h.PagesInRow++
	if h.PagesInRow < pagesUntilHost || h.FailuresByRow >= maxStepsByRow && h.PagesInRow <= 2*h.AnsweredPages {
		return h
	}
	before := h.ConsecutiveFailures
	h = h.afterFailure(v.Status, maxFailures)
	h.FailuresByRow += max(h.ConsecutiveFailures-before, 0)
	return h
}

// withoutFailedPage returns h without a failed page.
func (h HostHealth) withoutFailedPage(url string) HostHealth {
	for i := range h.FailedPages {
		if h.FailedPages[i].URL == url && url != "" {
			copy(h.FailedPages[i:], h.FailedPages[i+1:])
			h.FailedPages[MaxFailedPages-1] = FailedPage{}
			break
		}
	}
	return h
}

// shortenPageURL returns a URL as FailedPage.URL has it. Two URLs stay different.
func shortenPageURL(url string) string {
	if len(url) <= MaxFailedPageURL {
		return url
	}
	sum := fnv.New64a()
	sum.Write([]byte(url))
	const ending = len("…") + 16
	return strings.ToValidUTF8(url[:MaxFailedPageURL-ending], "") + fmt.Sprintf("…%016x", sum.Sum64())
}

// RestReason returns for people why the host rests for longer than its delay; empty if it does not.
func (h HostHealth) RestReason() string {
	switch {
	case h.ConsecutiveFailures == 0:
		return ""
	case h.FailuresByRow > 0:
		return fmt.Sprintf("back-off, step %d: %d different pages in a row failed, the last with status %d",
			h.ConsecutiveFailures, h.PagesInRow, h.LastFailureStatus)
	case h.LastFailureStatus == 0:
		return fmt.Sprintf("back-off, step %d: a request had no answer", h.ConsecutiveFailures)
	}
	return fmt.Sprintf("back-off, step %d: it answered with status %d", h.ConsecutiveFailures, h.LastFailureStatus)
}
