package bolt

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// A place in the file is reported once, until too many places are remembered.
func TestDamageReporter(t *testing.T) {
	var reported []string
	d := damageReporter{path: "a.db", onDamaged: func(err error) { reported = append(reported, err.Error()) }}
	d.reportOnce("url 1", "record %d", 1)
	d.reportOnce("url 1", "record %d", 1)
	d.reportOnce("url 2", "record %d", 2)
	d.reportQuarantinedURL(errors.New("bad"))
	want := []string{"a.db is damaged: record 1", "a.db is damaged: record 2", "a.db: one URL is set aside: bad"}
	if !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	for n := range 2 * maxReports {
		d.reportOnce(fmt.Sprint(n), "n")
	}
	if len(d.reported) > maxReports {
		t.Errorf("%d places are remembered, the most is %d", len(d.reported), maxReports)
	}
	if err, want := d.errorf("log: %d", 7), "a.db is damaged: log: 7: restore it from a backup, or move it away to begin anew"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
