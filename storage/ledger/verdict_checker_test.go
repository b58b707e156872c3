package ledger

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A verdict is derived again for the agent of its run: with the run's fallback tokens, and without the rules
// for "*", and with the mark not_for_indexing, only if the run says so (EXC-06).
func TestVerdictsOfAgents(t *testing.T) {
	direct, image, plain := RunStart{ProductToken: "YandexDirect",
		FallbackTokens: []string{"yandex"}, IgnoresStarRules: true},
		RunStart{ProductToken: "Googlebot-Image", FallbackTokens: []string{"googlebot"}},
		RunStart{ProductToken: "YandexDirect"}
	marked, unmarked := robots.Verdict{Allowed: true, DisallowedForMainRobot: true}, robots.Verdict{Allowed: true}
	for _, test := range []struct {
		name, file string
		run        RunStart
		verdict    robots.Verdict
		valid      bool
	}{
		{"marked", "User-agent: *\nDisallow: /\n", direct, marked, true},
		{"the mark is missing", "User-agent: *\nDisallow: /\n", direct, unmarked, false},
		{"the mark is invented", "User-agent: *\nDisallow: /b\n", direct, marked, false},
		{"exempt only if the run says so", "User-agent: *\nDisallow: /\n", plain, marked, false},
		{"a run without fallback tokens", "User-agent: yandex\nDisallow: /\n", plain, unmarked, true},
		{"a fallback token", "User-agent: googlebot\nDisallow: /\n", image, unmarked, false},
		{"no such exempt agent", "", RunStart{ProductToken: "examplebot", IgnoresStarRules: true}, unmarked, false},
		{"an exempt agent with other tokens", "", RunStart{ProductToken: "YandexDirect", IgnoresStarRules: true},
			unmarked, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.run.RobotsDialect = "yandex"
			l := openLedger(t, Config{Dir: dir, RunStart: test.run})
			w := &sampleWriter{t: t, ledger: l}
			hash := sha256Hex([]byte(test.file))
			if err := l.StoreRobotsFile(hash, []byte(test.file)); err != nil {
				t.Fatal(err)
			}
			u, err := decorum.ParseURL("http://h/a")
			if err != nil {
				t.Fatal(err)
			}
			file := gate.FetchSummary{SHA256: hash, FetchedAt: time.Now(), Outcome: gate.OutcomeRules}
			n := w.appendRecord(Record{Request: &Request{URL: u.String(), Kind: KindPage,
				Origin: u.Origin().String(), URLSource: "seed",
				RobotsVerdict: NewRobotsVerdict(test.verdict, file), Slots: 1}})
			w.appendRecord(Record{Response: &Response{RequestNumber: n, EndedAt: time.Now(), Status: 200}})
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			report, err := Verify(dir, VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if valid := len(report.Findings) == 0; valid != test.valid {
				t.Errorf("valid %t, want %t: %v", valid, test.valid, report.Findings)
			}
		})
	}
}
