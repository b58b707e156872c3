package ledger

import (
	"os"
	"path/filepath"
	"testing"
)

// Records, Verify and Open return for any content of a segment, and a ledger that Open accepts has an intact
// chain after Close.
func FuzzSegment(f *testing.F) {
	head := genesisHead()
	var records []byte
	for _, body := range []string{
		`{"run":{"software":"x","user_agent":"x","agent":"x","dialect":"google","extensions":true,"delay_ms":0}}`,
		`{"request":{"url":"http://a.test/","kind":"page","origin":"http://a.test","source":"seed","slots":1,` +
			`"robots":{"allowed":true,"outcome":"allow_all","fetched":"2026-11-22T00:00:00Z","group":""}}}`,
		`{"answer":{"request":2,"end":"2026-11-22T00:00:00Z","status":200,"bytes":0}}`,
		`{"clock":{"set_by_us":-3600000000}}`, `{"recovery":{"cut_bytes":1}}`,
		`{"checkpoint":{"key":"","signature":null}}`, `{"end":{"requests":1}}`,
	} {
		line, next := head.appendRecord(nil, truncateTime(fuzzTime), []byte(body+"\n"))
		records, head = append(records, line...), next
		f.Add(records)
	}
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, plainSegmentName(1)), text, 0o600); err != nil {
			t.Fatal(err)
		}
		for range Records(dir) {
		}
		if _, err := Verify(dir, VerifyOptions{}); err != nil {
			t.Fatal(err)
		}
		l, err := Open(Config{Dir: dir, RunStart: testRun()})
		if err != nil {
			return
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		head := genesisHead()
		err = segment{name: plainSegmentName(1), serial: 1}.forEachLine(dir, func(number int, line []byte) (err error) {
			_, head, err = head.decodeAndVerifyNext(line)
			return err
		})
		if err != nil {
			t.Errorf("Open succeeded, but the chain is broken: %v", err)
		}
	})
}
