package project

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

func TestUserAgent(t *testing.T) {
	p := Default()
	p.Agent.Contact = "https://example.com/bot"
	if got, want := p.UserAgent(), "decorum/"+decorum.Version()+" (+https://example.com/bot)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Agent.Product, p.Agent.Version = "examplebot", "1.0"
	if got, want := p.UserAgent(), "examplebot/1.0 (+https://example.com/bot)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOffersPostQuantum: by default, TLS offers post-quantum key exchange to a crawl that may exchange
// something secret.
func TestOffersPostQuantum(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(f *FetchSettings)
		want   bool
	}{
		{"defaults", func(*FetchSettings) {}, false},
		{"header that is no secret", func(f *FetchSettings) { f.Headers = map[string]string{"accept-language": "en"} },
			false},
		{"header", func(f *FetchSettings) { f.Headers = map[string]string{"Authorization": "Basic YQ=="} }, true},
		{"unknown header", func(f *FetchSettings) { f.Headers = map[string]string{"Accept-Key": "a"} }, true},
		{"cookies", func(f *FetchSettings) { f.Cookies = true }, true},
		{"private addresses", func(f *FetchSettings) { f.AllowPrivate = true }, true},
		{"own authority", func(f *FetchSettings) { f.CAFile = "ca.pem" }, true},
		{"always", func(f *FetchSettings) { f.Connections.PostQuantum = "always" }, true},
		{"never", func(f *FetchSettings) { f.Cookies, f.Connections.PostQuantum = true, "never" }, false},
	} {
		p := Default()
		tt.change(&p.Fetch)
		if got := p.OffersPostQuantum(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	p := Default()
	if p.Handler = "callbacks"; !p.OffersPostQuantum() {
		t.Error("callbacks, which may send anything: not offered")
	}
	p = Default()
	if p.Agent.Signature.KeyFiles = []string{"key.pem"}; !p.OffersPostQuantum() {
		t.Error("signed requests, which sites may show more: not offered")
	}
}

// TestZeroIsNone: 0 in the project file means none, although the zero value of the other packages'
// configuration means the default.
func TestZeroIsNone(t *testing.T) {
	p := Default()
	p.Politeness.Delay, p.Politeness.AdaptiveFactor, p.Politeness.MaxLearnedDelay, p.Scope.MaxDepth = 0, 0, 0, 0
	policy := p.PolitenessPolicy().WithDefaults()
	if policy.Delay > 0 || policy.AdaptiveFactor > 0 || policy.MaxLearnedDelay > 0 {
		t.Errorf("delay %v, adaptive %v, max_learned_delay %v; want none",
			policy.Delay, policy.AdaptiveFactor, policy.MaxLearnedDelay)
	}
	p.Discover.MaxFeedsPerHost, p.Discover.MaxSortLinksPerHost = 0, 0
	scope, err := p.ScopeConfig()
	if err != nil || scope.MaxDepth >= 0 {
		t.Errorf("depth %d, %v; want seeds only", scope.MaxDepth, err)
	}
	if scope.MaxFeedsPerHost >= 0 || scope.MaxSortLinksPerHost >= 0 {
		t.Errorf("%d feeds, %d sort links; want no limit", scope.MaxFeedsPerHost, scope.MaxSortLinksPerHost)
	}
}

// TestBackoffFields: the fields of politeness.backoff are those of the policy, and their defaults are
// the defaults of the policy.
func TestBackoffFields(t *testing.T) {
	p := Default()
	policy, want := p.PolitenessPolicy(), politeness.Policy{}.WithDefaults()
	if policy.InitialBackoff != want.InitialBackoff || policy.BackoffFactor != want.BackoffFactor ||
		policy.MaxBackoff != want.MaxBackoff || policy.MaxLearnedDelay != want.MaxLearnedDelay {
		t.Errorf("the defaults give %+v", policy)
	}
	p.Politeness.Backoff = BackoffPoliteness{Initial: Duration(time.Second), Factor: 3, Max: Duration(time.Minute)}
	policy = p.PolitenessPolicy()
	if policy.InitialBackoff != time.Second || policy.BackoffFactor != 3 || policy.MaxBackoff != time.Minute {
		t.Errorf("the fields give %+v", policy)
	}
}

func TestProxyAndWARC(t *testing.T) {
	p := Default()
	p.Output.WARCDir, p.Fetch.Proxy = "archive", "http://proxy.example:3128"
	if f := checkedBy(checkOutputSettings, &p); len(f) != 1 || f[0].FieldPath != "output.warc" {
		t.Errorf("%v, want a problem with output.warc", f)
	}
}

// checkedBy returns the problems that check finds in p.
func checkedBy(check func(*Project, *problemCollector), p *Project) []FieldProblem {
	found := &problemCollector{reported: map[string]bool{}}
	check(p, found)
	return found.problems
}
