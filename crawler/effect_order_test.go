package crawler_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/storage"
)

// exchangeEffects are the steps of every visit from the call of the fetcher to the archive.
var exchangeEffects = []trialStep{
	stepFetch, stepConnect, stepSend, stepLedgerRequest, stepRequest, stepFetched, stepLedgerResponse, stepArchive,
}

// effectsOfLastAck returns the effects of a trial between the last ack but one and the last, and
// after it. It leaves out reads, and calls of the Coordinator.
func effectsOfLastAck(effects []string) []string {
	last, isAck := 0, func(e string) bool { return strings.HasPrefix(e, string(stepAck)) }
	for i, e := range effects {
		if isAck(e) && slices.ContainsFunc(effects[i+1:], isAck) {
			last = i + 1
		}
	}
	return slices.DeleteFunc(slices.Clone(effects[last:]), func(e string) bool {
		return strings.HasPrefix(e, string(stepReadNote)) || strings.HasPrefix(e, string(stepCheckVisit))
	})
}

// recordEffects makes a trial record its effects.
func recordEffects(tr *visitTrial) *[]string {
	var effects []string
	tr.onStep = func(step trialStep, what string) {
		if effects = append(effects, strings.TrimSpace(string(step)+" "+what)); step == stepLedgerResponse {
			effects[len(effects)-1] += " " + tr.target()
		}
	}
	return &effects
}

// effectsOf returns the effects of steps that concern a URL.
func effectsOf(url string, steps ...trialStep) (effects []string) {
	for _, s := range steps {
		effects = append(effects, string(s)+" "+url)
	}
	return effects
}

// checkEffects compares the effects with the wanted ones.
func checkEffects(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("it did\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestOrderOfEffects checks the effects of a visit, in order, from the lease of its URL: the
// robots.txt that allows it is in the ledger before any record names it, and its sitemaps are
// queued; the request is in the ledger before its first byte, and the response before the archive
// has it; the first page is noted before the handler; the links are in the store before the URL is
// acked, and the ack comes last.
func TestOrderOfEffects(t *testing.T) {
	const page = "http://a.test/"
	firstOfOrigin := []string{string(stepUnpark) + " http://a.test", string(stepSetNote) + " heeded"}
	robotsKept, pageCounted := []string{string(stepLedgerFile)}, []string{string(stepPageCounted)}
	robotsLearnt := []string{string(stepSetNote) + " robots", string(stepHold) + " http://a.test"}
	for kind, want := range map[crawler.VisitKind]struct{ before, after []string }{
		crawler.PageVisit: {slices.Concat(firstOfOrigin, robotsKept, pageCounted),
			slices.Concat([]string{string(stepSetNote) + " page_found"}, effectsOf(page, stepHandler, stepRecorder),
				effectsOf("http://a.test/linked", stepAdd), effectsOf(page, stepAck))},
		crawler.FeedVisit: {slices.Concat(robotsKept, pageCounted),
			slices.Concat(effectsOf("http://a.test/feed", stepHandler, stepRecorder),
				effectsOf("http://a.test/listed", stepAdd),
				effectsOf("http://a.test/feed", stepAck))},
		crawler.SitemapVisit: {robotsKept,
			slices.Concat(effectsOf("http://a.test/listed", stepAdd), effectsOf("http://a.test/map.xml", stepAck))},
		crawler.TDMRepVisit: {slices.Concat(firstOfOrigin, robotsKept), []string{string(stepSetNote) + " tdmrep",
			string(stepUnpark) + " http://a.test", string(stepHold) + " http://a.test",
			string(stepAck) + " http://a.test/"}},
		crawler.RobotsVisit:         {effectsOf(page, stepAdd), slices.Concat(robotsLearnt, effectsOf(page, stepAck))},
		crawler.RobotsRedirectVisit: {nil, slices.Concat(robotsLearnt, effectsOf("http://a.test/rules.txt", stepAck))},
	} {
		t.Run(visitKinds[kind], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newVisitTrial(t, kind, answerOfKind(kind))
				effects := recordEffects(tr)
				tr.start()
				if err := tr.visitTarget(); err != nil {
					t.Fatal(err)
				}
				checkEffects(t, effectsOfLastAck(*effects),
					slices.Concat(want.before, effectsOf(tr.target(), exchangeEffects...), want.after))
			})
		})
	}
}

// TestOrderOfEffectsOfARefusal: the robots.txt that refuses a URL is in the ledger before the
// refusal that names it, and the URL is acked last.
func TestOrderOfEffectsOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newVisitTrial(t, crawler.RobotsVisit,
			crawltest.Text("User-agent: *\nDisallow: /\nSitemap: http://a.test/map.xml\n"))
		effects := recordEffects(tr)
		tr.start()
		for range 2 {
			if err := tr.step(); err != nil {
				t.Fatal(err)
			}
		}
		checkEffects(t, effectsOfLastAck(*effects),
			[]string{string(stepLedgerFile), string(stepLedgerRefusal) + " http://a.test/",
				string(stepAdd) + " http://a.test/map.xml", string(stepUnpark) + " http://a.test",
				string(stepSetNote) + " heeded",
				string(stepAck) + " http://a.test/"})
	})
}

// TestOrderOfEffectsOfAPost: the mark that a request is sent is durable before the request is in
// the ledger, and the request is there before its first byte.
func TestOrderOfEffectsOfAPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const url = "http://a.test/"
		tr := newVisitTrial(t, crawler.PageVisit, crawltest.HTML("thanks"))
		tr.seed = ""
		effects := recordEffects(tr)
		tr.start()
		discover(tr, url, storage.Entry{Request: &storage.NonGETRequest{Method: http.MethodPost,
			Body: []byte("letter")}})
		if err := tr.visitTarget(); err != nil {
			t.Fatal(err)
		}
		checkEffects(t, effectsOfLastAck(*effects), slices.Concat(
			[]string{string(stepUnpark) + " http://a.test", string(stepSetNote) + " heeded",
				string(stepLedgerFile), string(stepPageCounted)},
			effectsOf(url, stepFetch, stepConnect, stepSend, stepMarkSent), []string{string(stepFlush)},
			effectsOf(url, stepLedgerRequest, stepRequest, stepFetched, stepLedgerResponse, stepArchive,
				stepHandler, stepRecorder, stepAck)))
	})
}

// TestOrderOfEffectsOfALongRest: a long rest is flushed as soon as it is in the store.
func TestOrderOfEffectsOfALongRest(t *testing.T) {
	for kind, name := range visitKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newVisitTrial(t, kind, statusAnswer(http.StatusServiceUnavailable, "Retry-After", "120")(""))
				effects := recordEffects(tr)
				tr.start()
				if err := tr.visitTarget(); err != nil {
					t.Fatal(err)
				}
				all := *effects
				if last := all[max(0, len(all)-2):]; !strings.HasPrefix(last[0], string(stepAck)) ||
					last[1] != string(stepFlush) {
					t.Errorf("at last it did %q, want ack and flush", last)
				}
			})
		})
	}
}
