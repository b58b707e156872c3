package ledger

import "testing"

// BenchmarkAppend measures Append of a request and its response.
func BenchmarkAppend(b *testing.B) {
	l, err := Open(Config{Dir: b.TempDir(), RunStart: testRun()})
	if err != nil {
		b.Fatal(err)
	}
	q := Record{Request: &Request{URL: "http://h0.test/some/page/of/usual/length.html", Kind: KindPage,
		Origin: "http://h0.test", ServerIP: "127.0.0.1",
		URLSource: "link", Referrer: "http://h0.test/some/other/page/of/usual/length.html", RequiredDelayMS: 1000,
		ObservedDelayMS: 1002, Slots: 1,
		RobotsVerdict: &RobotsVerdict{Allowed: true, FetchOutcome: "rules", FileSHA256: sha256Hex(sampleRobots(0)),
			Group: "examplebot", Rule: "allow: /some", RuleLine: 3}}}
	b.ReportAllocs()
	for b.Loop() {
		n, err := l.Append(&q)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Append(&Record{Response: &Response{RequestNumber: n, Status: 200,
			BodyBytes: 20_480}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
