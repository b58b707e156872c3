package project

import (
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/politeness"
)

// projectWithPoliteness returns the project of a file with the given text after "politeness:".
func projectWithPoliteness(t *testing.T, politeness string) Project {
	t.Helper()
	p, err := Read(testfile.Write(t, "p.yaml", minimalFile+"politeness:"+politeness))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAddressLimits(t *testing.T) {
	for _, tt := range []struct {
		file string
		want politeness.LimiterConfig
	}{
		{" {delay: 1s}\n", politeness.LimiterConfig{IPConcurrency: 2}},
		{" {ip: {}}\n", politeness.LimiterConfig{IPConcurrency: 2}},
		{" {ip: {concurrency: 2}}\n", politeness.LimiterConfig{IPConcurrency: 2, LimitLoopback: true}},
		{" {ip: {delay: 2s}}\n", politeness.LimiterConfig{IPConcurrency: 2,
			IPDelay: 2 * time.Second, LimitLoopback: true}},
		{" {ip: {concurrency: 5, delay: 0s}}\n", politeness.LimiterConfig{IPConcurrency: 5, LimitLoopback: true}},
	} {
		p := projectWithPoliteness(t, tt.file)
		if diff := cmp.Diff(tt.want, p.LimiterConfig(time.Time{})); diff != "" {
			t.Errorf("%s(-want +got)\n%s", tt.file, diff)
		}
	}
}

// TestPolicyOfAHost: an override changes only the fields that it sets, until the end of its last
// day. 0 means none, not the default.
func TestPolicyOfAHost(t *testing.T) {
	p := projectWithPoliteness(t, `
  delay: 3s
  window: {hours: "22:00-06:00", zone: Europe/Prague}
  hosts:
    Intranet.Example: {delay: 0s, concurrency: 8, adaptive: 0, window: {}, reason: ours, expires: 2027-01-31}
    slow.example: {delay: 1d}
`)
	text, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Read(testfile.Write(t, "p.yaml", string(text))); err != nil {
		t.Errorf("reading the copy for --resume: %v", err)
	} else if diff := cmp.Diff(p.Politeness, again.Politeness); diff != "" {
		t.Errorf("the copy for --resume differs (-want +got)\n%s", diff)
	}
	policy := p.PolitenessPolicy()
	last := time.Date(2027, 1, 31, 23, 59, 59, 0, time.UTC)
	winter := time.Date(2027, 1, 31, 21, 0, 0, 0, time.UTC) // 22:00 in Prague
	for _, tt := range []struct {
		host        string
		at          time.Time
		delay       time.Duration
		adaptive    float64
		concurrency int
		open        bool
	}{
		{"intranet.example", last.Add(-12 * time.Hour), politeness.NoDelay, -1, 8, true},
		{"intranet.example", last, politeness.NoDelay, -1, 8, true},
		{"intranet.example", last.Add(12 * time.Hour), 3 * time.Second, 1, 1, false},
		{"slow.example", winter, 24 * time.Hour, 1, 1, true},
		{"slow.example", winter.Add(-1), 24 * time.Hour, 1, 1, false},
		{"other.example", winter, 3 * time.Second, 1, 1, true},
	} {
		q := policy.ForHost(tt.host, tt.at)
		if q.Delay != tt.delay || q.AdaptiveFactor != tt.adaptive || q.Concurrency != tt.concurrency ||
			q.VisitWindow.IsOpen(tt.at) != tt.open {
			t.Errorf("%s at %v: delay %v, adaptive %v, concurrency %d, open %t; want %+v", tt.host, tt.at,
				q.Delay, q.AdaptiveFactor, q.Concurrency, q.VisitWindow.IsOpen(tt.at), tt)
		}
	}
	if err := policy.Validate(); err != nil {
		t.Error(err)
	}
	if o := policy.HostOverrides["intranet.example"]; o.Reason != "ours" || !o.Expires.Equal(last.Add(time.Second)) {
		t.Errorf("override %+v", o)
	}
}
