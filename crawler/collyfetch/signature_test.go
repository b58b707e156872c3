package collyfetch_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A signatureChecker verifies signatures made with one key.
type signatureChecker struct {
	t         *testing.T
	publicKey string
	mu        sync.Mutex // guards nonces
	nonces    map[string]bool
}

// newSignerAndChecker returns a Signer and a checker of its signatures.
func newSignerAndChecker(t *testing.T) (*botauth.Signer, *signatureChecker) {
	t.Helper()
	k, err := botauth.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := botauth.NewSigner(k, "https://bot.test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var set botauth.KeySet
	if err := json.Unmarshal(botauth.MarshalDirectory(k), &set); err != nil {
		t.Fatal(err)
	}
	return signer, &signatureChecker{t: t, publicKey: set.Keys[0].X, nonces: map[string]bool{}}
}

// check fails the test unless r has a valid signature of its own, made now.
func (n *signatureChecker) check(r *http.Request) {
	s, err := authtest.VerifyRequest(r, n.publicKey, time.Now())
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		n.t.Errorf("%s: %v", r.URL, err)
	case n.nonces[s.Nonce]:
		n.t.Errorf("%s: the signature of an earlier request", r.URL)
	case s.DirectoryOrigin != "https://bot.test" || s.Expires.Sub(s.Created) != time.Minute:
		n.t.Errorf("%s: %+v", r.URL, s)
	}
	n.nonces[s.Nonce] = true
}

// TestSignatures: every request of a crawl has its own signature, including requests for
// robots.txt, after redirects, with other methods, and minutes later after a failure. Callbacks
// cannot replace it.
func TestSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failTwice := func(r crawltest.PageRequest) crawltest.Response {
			if r.NthForURL < 3 {
				return crawltest.Response{Status: http.StatusServiceUnavailable,
					Header: http.Header{"Retry-After": {"600"}}}
			}
			return crawltest.HTML("<h1>End</h1>")
		}
		web := crawltest.New(
			crawltest.Site{Host: "a.test",
				Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.Redirect(http.StatusFound,
					"https://b.test/end"))}},
			crawltest.Site{Host: "b.test", Pages: map[string]crawltest.PageFunc{"/end": failTwice,
				"/form": crawltest.StaticPage(crawltest.HTML("thanks"))}})
		signer, notary := newSignerAndChecker(t)
		var requested []string
		o := quietOptions(roundTripFunc(func(r *http.Request) (*http.Response, error) {
			requested = append(requested, r.Method+" "+r.URL.String())
			notary.check(r)
			return web.RoundTrip(r)
		}))
		o.FetchConfig.Signer = signer
		crawl := wrapCollector(
			t, colly.NewCollector(colly.Headers(map[string]string{"signature-agent": `sig1="https://evil.test"`})), o)
		crawl.OnRequest(func(r *colly.Request) {
			for _, name := range []string{"signature", "Signature-Input", "SIGNATURE-AGENT"} {
				(*r.Headers)[name] = []string{"sig1=:AAAA:"}
			}
		})
		must(t, crawl.Request("GET", "http://a.test/", nil, nil, http.Header{"Signature": {"sig1=:AAAA:"}}))
		must(t, crawl.Request("POST", "https://b.test/form", nil, nil, nil))
		must(t, crawl.Run(t.Context()))
		slices.Sort(requested)
		want := []string{"GET http://a.test/", "GET http://a.test/robots.txt",
			"GET https://b.test/end", "GET https://b.test/end",
			"GET https://b.test/end", "GET https://b.test/robots.txt", "POST https://b.test/form"}
		if !slices.Equal(requested, want) {
			t.Errorf("requested %q, want %q", requested, want)
		}
	})
}

// TestUnsigned: without a Signer, requests have no signature headers.
func TestUnsigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := smallWeb()
		crawl := wrapCollector(t, colly.NewCollector(),
			quietOptions(roundTripFunc(func(r *http.Request) (*http.Response, error) {
				for _, name := range []string{botauth.SignatureAgentHeader,
					botauth.SignatureInputHeader, botauth.SignatureHeader} {
					if r.Header[name] != nil {
						t.Errorf("%s has %s", r.URL, name)
					}
				}
				return web.RoundTrip(r)
			})))
		must(t, crawl.Visit("http://a.test/mill"))
	})
}
